# osb_embed(TARGET SYMBOL FILE): FILE's bytes in TARGET as `SYMBOL` .. `SYMBOL_end`.
# .incbin, because #embed is slow and ccache serves stale objects for it; OBJECT_DEPENDS, because no depfile lists it.
function(osb_embed target symbol file)
  set(asm ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(CONFIGURE OUTPUT ${asm} @ONLY CONTENT [[
  .section .rodata
  .global @symbol@
  .global @symbol@_end
  .balign 16
@symbol@:
  .incbin "@file@"
@symbol@_end:
  .byte 0
  .section .note.GNU-stack,"",@progbits
]])
  set_source_files_properties(${asm} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${asm})
endfunction()
