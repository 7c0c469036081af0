'use strict';
// The kernel of JavaScript and TypeScript. Node 18 or newer, nothing else; TypeScript also needs a Node that strips types or a
// `typescript` package that it finds. --expose-internals is for Node's own parser (acorn): a cell is not a script, as
// it may await, import and declare again what an earlier one declared, so its top level is rewritten before V8 sees it.
// --experimental-vm-modules is what `import` in a cell needs in older ones.

const fs = require('fs');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');
const Module = require('module');

const kSource = '/proc/self/fd/4';
const kLanguage = process.argv[2] === 'typescript' ? 'typescript' : 'javascript';
const kMaxFrame = 64 * 1024 * 1024;
const {exit, cwd} = process;

// ---- Frames -----------------------------------------------------------------------------------------------------------------

function write_all(fd, data) {
  let bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(fs.writeSync(fd, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN' && error.code !== 'EINTR') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);  // somebody made the pipe non-blocking
    }
  }
}

// Output goes to the pipes without a buffer of ours, so it is always out before a frame.
function send(frame) {
  const body = Buffer.from(JSON.stringify(frame), 'utf8');
  if (body.length > kMaxFrame) {
    const id = frame.id;
    if (frame.op === 'result' || frame.op === 'display') {
      send({op: 'error', id, ename: 'ResultTooLarge', evalue: `the result has ${body.length} bytes, 64 MiB is the most`, traceback: []});
    }
    return;
  }
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  write_all(3, Buffer.concat([head, body]));
}

// Reads without the loop. False at the end.
function take_what_is_there() {
  const piece = Buffer.alloc(65536);
  try {
    for (;;) {
      const more = fs.readSync(3, piece);
      if (more === 0) return false;
      take(Buffer.from(piece.subarray(0, more)));
    }
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
    return true;
  }
}

// After a frame with `wait`: until execd has it, so that what is written next cannot overtake it. The loop stands still meanwhile,
// so nobody else reads the answer.
function wait_for_answer() {
  for (answered = false; take_what_is_there() && !answered;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.05);
}

let answered = false;
let handle;  // of frames
let chunks = [];
let have = 0;
function take(chunk) {
  chunks.push(chunk);
  have += chunk.length;
  while (have >= 4) {
    if (chunks[0].length < 4) chunks = [Buffer.concat(chunks)];
    const length = chunks[0].readUInt32BE(0);
    if (length > kMaxFrame) exit(2);
    if (have < 4 + length) return;
    const all = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    chunks = [all.subarray(4 + length)];
    have = chunks[0].length;
    handle(JSON.parse(all.toString('utf8', 4, 4 + length)));
  }
}

function read_frames() {
  // execd is the only one on the other side: when it goes, so do we.
  const socket = new net.Socket({fd: 3, readable: true, writable: false});
  socket.on('data', (chunk) => {
    take(chunk);
    if (early && waiting.length > 0) take_what_is_there();  // whether the signal was for this cell
    early = false;
    // From here and not from a timer or the like: a cell that is stopped would leave Node's own code behind those in disorder.
    next();
  });
  socket.on('end', () => exit(0));
  socket.on('error', () => exit(0));
}

// ---- Output -----------------------------------------------------------------------------------------------------------------

// Node's own streams on pipes are set up slowly and buffer; these write at once.
function replace_stream(name, fd) {
  let made;
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      if (made) return made;
      const {Writable} = require('stream');
      made = new Writable({
        decodeStrings: true,
        write(chunk, _encoding, done) {
          write_all(fd, chunk);
          done();
        },
      });
      made.fd = fd;
      made._isStdio = true;
      made.destroySoon = made.destroy;
      made._destroy = (error, done) => done(error);
      return made;
    },
    set(value) { made = value; },
  });
}

function replace_console() {
  const sink = (fd) => ({
    write(text) {
      write_all(fd, text);
      return true;
    },
    on() {},
    once() {},
    removeListener() {},
    listenerCount() { return 0; },
  });
  const fresh = new console.Console({stdout: sink(1), stderr: sink(2), colorMode: false});
  for (const name of Object.keys(fresh)) console[name] = fresh[name];
}

// ---- From a cell to a script ------------------------------------------------------------------------------------------------

let acorn;
function parse(code) {
  acorn ??= require('internal/deps/acorn/acorn/dist/acorn');
  return acorn.parse(code, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    allowAwaitOutsideFunction: true,
    allowReturnOutsideFunction: false,
    allowHashBang: true,
    // Sloppy code is normal at a prompt; V8 will complain about what it does not like.
    allowReserved: true,
  });
}

function parse_sloppy(code) {
  try {
    return parse(code);
  } catch (error) {
    try {
      return acorn.parse(code, {ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowHashBang: true});
    } catch {
      throw error;
    }
  }
}

// The names that a pattern binds.
function bound_names(pattern, into) {
  switch (pattern.type) {
    case 'Identifier': into.push(pattern.name); break;
    case 'ObjectPattern': for (const each of pattern.properties) bound_names(each.value ?? each.argument, into); break;
    case 'ArrayPattern': for (const each of pattern.elements) if (each) bound_names(each, into); break;
    case 'AssignmentPattern': bound_names(pattern.left, into); break;
    case 'RestElement': bound_names(pattern.argument, into); break;
  }
  return into;
}

const is_function = (node) => /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);

// Calls visit(node, parent) for everything outside functions. Classes are entered for their heads and computed keys only.
function walk(node, visit, parent = null) {
  if (visit(node, parent) === false || is_function(node)) return;
  if (node.type === 'PropertyDefinition' || node.type === 'StaticBlock' || node.type === 'MethodDefinition') {
    if (node.computed) walk(node.key, visit, node);
    return;
  }
  for (const key in node) {
    const child = node[key];
    if (Array.isArray(child)) {
      for (const each of child) if (each && typeof each.type === 'string') walk(each, visit, node);
    } else if (child && typeof child.type === 'string') {
      walk(child, visit, node);
    }
  }
}

// Replaces ranges of a text. Nothing here adds or removes a line, so positions in stack traces stay true.
class Edits {
  constructor(text) { this.text = text; this.list = []; }
  replace(start, end, by) { this.list.push({start, end, by}); }
  insert(at, by) { this.list.push({start: at, end: at, by}); }
  apply() {
    let out = '';
    let at = 0;
    for (const {start, end, by} of this.list.sort((a, b) => a.start - b.start || a.end - b.end)) {
      if (start < at) continue;  // inside something replaced already
      out += this.text.slice(at, start) + by;
      at = end;
    }
    return out + this.text.slice(at);
  }
}

const lines_of = (text) => '\n'.repeat((text.match(/\n/g) ?? []).length);

function import_as_code(node, code, edits, names) {
  const source = JSON.stringify(node.source.value);
  const attributes = node.attributes ?? [];
  const options = attributes.length === 0 ? '' : `, {with: {${attributes.map((each) => `${JSON.stringify(each.key.name ?? each.key.value)}: ${JSON.stringify(each.value.value)}`).join(', ')}}}`;
  const parts = [];
  for (const each of node.specifiers) {
    names.push(each.local.name);
    if (each.type === 'ImportNamespaceSpecifier') {
      parts.push(`${each.local.name} = $m`);
    } else {
      const wanted = each.type === 'ImportDefaultSpecifier' ? 'default' : each.imported.name ?? each.imported.value;
      parts.push(`${each.local.name} = $kernel.pick($m, ${JSON.stringify(wanted)}, ${source})`);
    }
  }
  const call = `await import(${source}${options})`;
  const text = parts.length === 0 ? `${call};` : `{ const $m = ${call}; ${parts.join('; ')}; }`;
  edits.replace(node.start, node.end, text + lines_of(code.slice(node.start, node.end)));
}

// What V8 gets for a cell: {code, async, names, value}. `names` become variables of the global object, whatever declared them, so that a
// later cell may declare them again.
function rewrite(code) {
  let tree;
  const trimmed = code.trimStart();
  if (trimmed.startsWith('{') && !code.trimEnd().endsWith(';')) {
    try {
      tree = parse(`(${code}\n)`);  // an object literal, not a block
      if (tree.body.length === 1) code = `(${code}\n)`;
      else tree = undefined;
    } catch {
      tree = undefined;
    }
  }
  tree ??= parse_sloppy(code);

  let async = false;
  walk(tree, (node) => {
    if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await) || node.type === 'ImportDeclaration') async = true;
    if (/^Export/.test(node.type) && node.source) async = true;
  });

  const edits = new Edits(code);
  const names = [];
  const hoisted = [];  // functions, which are there before the first line runs
  let value = false;
  const body = tree.body;
  for (const [index, statement] of body.entries()) {
    let node = statement;
    if (node.type === 'ExportNamedDeclaration' && node.declaration) {
      edits.replace(node.start, node.declaration.start, '');
      node = node.declaration;
    } else if (node.type === 'ExportDefaultDeclaration') {
      edits.replace(node.start, node.declaration.start, '');
      node = node.declaration;
      if (!/Declaration$/.test(node.type)) node = {type: 'ExpressionStatement', expression: node, start: node.start, end: statement.end};
      else if (!node.id) continue;
    } else if (/^Export/.test(node.type)) {
      edits.replace(node.start, node.end, (node.source ? `await import(${JSON.stringify(node.source.value)});` : ';') + lines_of(code.slice(node.start, node.end)));
      continue;
    }

    if (node.type === 'ImportDeclaration') {
      import_as_code(node, code, edits, names);
    } else if (node.type === 'ClassDeclaration') {
      names.push(node.id.name);
      edits.insert(node.start, `${async ? '' : 'var '}${node.id.name} = `);
      edits.insert(node.end, ';');
    } else if (node.type === 'FunctionDeclaration') {
      names.push(node.id.name);
      hoisted.push(node.id.name);
    } else if (node.type === 'VariableDeclaration' && !async) {
      for (const each of node.declarations) bound_names(each.id, names);
      edits.replace(node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length));  // columns stay as well
    } else if (async && node.type === 'VariableDeclaration') {
      assign_instead(node, edits, names, null);
    } else if (async) {
      walk(node, (inner, parent) => {
        if (inner.type === 'VariableDeclaration' && inner.kind === 'var') assign_instead(inner, edits, names, parent);
      });
    }
    if (index === body.length - 1 && node.type === 'ExpressionStatement') {
      value = true;  // of a script it is what V8 gives, of a function it is returned
      if (!async) continue;
      const {end} = node.expression;
      edits.insert(node.start, 'return {value: (');
      // The parentheses of `(a)` are no part of the expression's range.
      edits.replace(end, node.end, `${code.slice(end, node.end).replace(/;\s*$/, '')})};`);
    }
  }
  if (!async) return {code: edits.apply(), async, names, value};
  const keep = hoisted.map((name) => `globalThis.${name} = ${name};`).join('');
  const declared = names.filter((name) => !hoisted.includes(name));
  const head = `${declared.length === 0 ? '' : `var ${[...new Set(declared)].join(', ')};`}(async () => {${keep}`;
  return {code: `${head}${edits.apply()}\n})()`, async, names, value};
}

// `const {a} = b, c = d` as `({a} = b), c = d`: the variables are global, only their values come from here.
function assign_instead(node, edits, names, parent) {
  const loop = parent && /^For(In|Of)Statement$/.test(parent.type) && parent.left === node;
  const parts = node.declarations;
  for (const each of parts) bound_names(each.id, names);
  // The semicolon keeps an unfinished line before it apart; where one statement is all there may be, there is no such line.
  const among_others = !parent || /^(BlockStatement|SwitchCase)$/.test(parent.type);
  edits.replace(node.start, parts[0].start, among_others ? ';' : '');
  for (const each of parts) {
    if (loop) continue;
    // `var x` leaves a value alone, `let x` does not.
    const empty = !each.init && node.kind !== 'var' && each.id.type === 'Identifier';
    edits.insert(each.start, '(');
    edits.insert(each.end, empty ? ' = undefined)' : ')');
  }
}

// ---- TypeScript -------------------------------------------------------------------------------------------------------------

let strip;
function find_compiler() {
  if (Module.stripTypeScriptTypes) {
    return (code) => {
      try {
        return {code: Module.stripTypeScriptTypes(code)};  // leaves everything where it was
      } catch {
        return {code: Module.stripTypeScriptTypes(code, {mode: 'transform'})};
      }
    };
  }
  const places = [cwd(), ...(process.env.NODE_PATH ?? '').split(':').filter(Boolean), path.resolve(process.execPath, '../../lib/node_modules'),
    '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
  let ts;
  for (const place of places) {
    for (const name of [place, path.join(place, 'typescript')]) {
      try {
        ts = require(name === place ? Module.createRequire(path.join(place, 'x')).resolve('typescript') : name);
        break;
      } catch { /* the next place */ }
    }
    if (ts) break;
  }
  if (!ts) {
    throw Object.assign(new Error(`Node ${process.versions.node} does not strip types and no TypeScript compiler is in this image; install one ` +
      '("npm install --global typescript" or "apt-get install node-typescript"), or use Node 22.13 or newer'), {name: 'TypeScriptMissing'});
  }
  const options = {target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, isolatedModules: true, experimentalDecorators: true,
    sourceMap: true};
  // An import that only a later cell uses must stay.
  if (Number(ts.version.split('.')[0]) >= 5) options.verbatimModuleSyntax = true;
  else Object.assign(options, {preserveValueImports: true, importsNotUsedAsValues: ts.ImportsNotUsedAsValues.Preserve});
  return (code, name) => {
    const out = ts.transpileModule(code, {fileName: name, compilerOptions: options, reportDiagnostics: true});
    const wrong = (out.diagnostics ?? []).filter((each) => each.category === ts.DiagnosticCategory.Error && each.code < 2000);
    if (wrong.length > 0) {
      const {start = 0, messageText} = wrong[0];
      const line = code.slice(0, start).split('\n').length;
      const message = ts.flattenDiagnosticMessageText(messageText, '\n');
      const error = new SyntaxError(message);
      error.stack = `${name}:${line}\n${code.split('\n')[line - 1] ?? ''}\n\nSyntaxError: ${message}`;
      throw error;
    }
    return {code: out.outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, ''), map: out.sourceMapText};
  };
}

// A cell without a type in it needs no compiler, which saves its start. With "<" nobody can tell: `f<a>(b)` is both.
function to_javascript(code, name) {
  if (kLanguage === 'javascript') return {code};
  if (!code.includes('<')) {
    try {
      parse(code);
      return {code};
    } catch { /* types, or wrong */ }
  }
  strip ??= find_compiler();
  return strip(code, name);
}

// ---- Names that cells see ---------------------------------------------------------------------------------------------------

const hidden = (name, value) => Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});

const kernel = {
  pick(module, name, source) {
    if (name in module) return module[name];
    // TypeScript's imports may name a type, which is gone by now.
    if (kLanguage === 'typescript') return module.default?.[name];
    throw new SyntaxError(`The requested module '${source}' does not provide an export named '${name}'`);
  },
};

let required_from;
function refresh_require() {
  let here;
  try { here = cwd(); } catch { here = '/'; }
  if (here === required_from) return;
  required_from = here;
  hidden('require', Module.createRequire(path.join(here, 'cell')));
}

// Names of Node that are read-only, like `crypto`, give way to the cell's own.
function make_room(names) {
  for (const name of names) {
    const there = Object.getOwnPropertyDescriptor(globalThis, name);
    if (there && there.configurable && (there.get || there.set || !there.writable)) {
      Object.defineProperty(globalThis, name, {value: undefined, writable: true, configurable: true, enumerable: true});
    }
  }
}

function loader() {
  const constant = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (constant) return constant;
  return (specifier, _script, attributes) => {
    const from = require('url').pathToFileURL(path.join(cwd(), 'cell')).href;
    const {esmLoader} = require('internal/process/esm_loader');
    return esmLoader.import(specifier, from, attributes ?? {});
  };
}

// ---- Values and errors ------------------------------------------------------------------------------------------------------

const kDisplay = Symbol.for('Jupyter.display');

// A promise only where the value's own method gives one.
function to_mime(value) {
  const own = value !== null && typeof value === 'object' ? value[kDisplay] : undefined;
  if (typeof own === 'function') {
    const as_text = (data) => Object.fromEntries(Object.entries(data).map(([type, each]) => [type, typeof each === 'string' ? each : JSON.stringify(each)]));
    const data = own.call(value);
    return util.types.isPromise(data) ? data.then(as_text) : as_text(data);
  }
  return {'text/plain': util.inspect(value, {colors: false, maxArrayLength: 1000, maxStringLength: 1024 * 1024})};
}

function display(value) {
  const run = current;
  const show = (data) => {
    if (run === null || run !== current) return write_all(1, `${data['text/plain'] ?? ''}\n`);  // no cell waits for it
    leave_cell();
    send({op: 'display', id: run.id, data, wait: true});
    wait_for_answer();
    enter_cell(run);
  };
  const data = to_mime(value);
  if (!util.types.isPromise(data)) return show(data);
  const shown = data.then(show);
  run?.displays.push(shown);
  return shown;
}

const interrupted = () => Object.assign(new Error('the run was interrupted'), {name: 'KeyboardInterrupt', stack: 'KeyboardInterrupt: the run was interrupted'});

// The lines of a stack as the cell's author knows them: without the kernel and what is below it, and in the cell's own lines.
function trace(lines) {
  const is_frame = (line) => /^\s+at /.test(line);
  const last = lines.findLastIndex((line) => is_frame(line) && /\bcell_\d+\.[jt]s:/.test(line));
  const end = lines.findIndex((line, index) => index > last && is_frame(line) && line.includes(__filename));
  if (end >= 0) lines.length = end;
  const kept = lines.filter((line) => !(is_frame(line) && (line.includes(__filename) || /\(?node:(vm|internal\/)/.test(line))));
  const shown = kept.map((line) => line.replace(/\b(cell_\d+\.[jt]s):(\d+)(?::(\d+))?/g, (_, name, row, column) => located(name, +row, column && +column)));
  // How V8 begins the stack of what nobody caught: the place, the line as V8 has it, a mark below it.
  const [, name, row] = /^(cell_\d+\.[jt]s):(\d+)$/.exec(shown[0]) ?? [];
  const line = sources.get(name)?.code.split('\n')[row - 1];
  if (line !== undefined && line !== shown[1]) shown.splice(1, /^\s*\^+\s*$/.test(shown[2]) ? 2 : 1, line);
  return shown;
}

function describe(error) {
  if (error === null || typeof error !== 'object' || !util.types.isNativeError(error)) {
    const text = util.inspect(error);
    return {ename: 'Thrown', evalue: text, traceback: [`Uncaught ${text}`]};
  }
  if (error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') error = interrupted();
  const lines = [];
  let lead = '';
  for (let each = error, depth = 0; util.types.isNativeError(each) && depth < 10; each = each.cause, depth++) {
    lines.push(...trace(`${lead}${each.stack ?? each}`.split('\n')));
    for (const inner of each.errors ?? []) lines.push(`  ${inner}`);
    lead = 'Caused by: ';
  }
  return {ename: String(error.name ?? 'Error'), evalue: String(error.message ?? ''), traceback: lines};
}

// ---- What cells looked like ---------------------------------------------------------------------------------------------------

const kMaxSources = 4 * 1024 * 1024;
const sources = new Map();  // file name -> {code, map}; the oldest go when there is too much of them
let kept_source = 0;
function remember(name, code, map) {
  if (!sources.has(name)) kept_source += code.length;
  sources.set(name, {code, map});
  kept_source += map?.length ?? 0;
  for (const [oldest, {code, map}] of sources) {
    if (kept_source <= kMaxSources || oldest === name) break;
    kept_source -= code.length + (map?.length ?? 0);
    sources.delete(oldest);
  }
}

// A place in what V8 got as a place in what the compiler got.
function located(name, row, column) {
  const source = sources.get(name);
  if (source?.map) {
    source.entries ??= new Module.SourceMap(JSON.parse(source.map));
    const found = source.entries.findEntry(row - 1, (column ?? 1e9) - 1);
    if (found.originalLine !== undefined) return `${name}:${found.originalLine + 1}`;
  }
  return `${name}:${row}${column ? `:${column}` : ''}`;
}

// ---- Runs -------------------------------------------------------------------------------------------------------------------

let count = 0;
let current = null;  // the run that has not said "done" yet
const waiting = [];
let early = false;  // an interrupt came while no cell ran
let meant;  // the last run that was to be interrupted

function finish(run, frame) {
  if (current !== run) return;  // it was interrupted, and what it did since is nobody's
  leave_cell();
  if (frame) send({...frame, id: run.id});
  current = null;
  send({op: 'done', id: run.id, count: run.number});
  setImmediate(next);
}
const fail = (run, error) => finish(run, {op: 'error', ...describe(error)});

function next() {
  if (current || waiting.length === 0) return;
  const {id, code} = waiting.shift();
  count += 1;
  const run = {id, number: count, displays: []};
  current = run;
  if (meant === id) return fail(run, interrupted());
  evaluate(run, String(code)).catch((error) => fail(run, error));
}

async function evaluate(run, code) {
  const name = `cell_${run.number}.${kLanguage === 'typescript' ? 'ts' : 'js'}`;
  remember(name, code);
  const plain = to_javascript(code, name);
  remember(name, code, plain.map);
  const cell = understood(plain.code, name);
  refresh_require();
  make_room(cell.names);
  const script = new vm.Script(cell.code, {filename: name, importModuleDynamically: loader()});
  enter_cell(run);
  let value = script.runInThisContext();
  if (!cell.async && !cell.value) value = undefined;
  if (util.types.isPromise(value)) {
    value = await value;
    // A promise as the last value is waited for: `main()` at the end of a cell means its work, not the promise.
    if (cell.async) value = await value?.value;
  }
  if (run.displays.length > 0) await Promise.all(run.displays);
  if (value === undefined) return finish(run);
  if (current === run) hidden('_', value);
  finish(run, {op: 'result', count: run.number, data: await to_mime(value)});
}

// What the parser refuses is V8's to explain; and if V8 takes it, the parser was too old.
function understood(source, name) {
  try {
    return rewrite(source);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    new vm.Script(source, {filename: name});
    return {code: source, async: false, names: [], value: true};
  }
}

// ---- Interrupts -------------------------------------------------------------------------------------------------------------

function interrupt() {
  if (!current) {
    early = true;
    return;
  }
  take_what_is_there();
  if (meant === current.id) fail(current, interrupted());  // else the signal was for one that is over
}

// A loop blocks the thread that would notice the signal. A second one hears it as well, and when the first does not, stops what that
// does through the inspector. V8's own way, `breakOnSigint`, does not reach what goes on after an await, and where it begins and ends
// a signal kills the process. Both threads have handles of their own: whatever a cell does with process.on('SIGINT'), they hear it.
const heard = new Int32Array(new SharedArrayBuffer(16));
const kHeard = 0;    // how many signals the loop has noticed
const kStopped = 1;  // it did not, and what ran was stopped
const kInCell = 2;   // it is code of the cell that runs, which may be stopped: the kernel's own would be left in disorder
const kSignal = 3;   // a signal came

// Enters code of the cell. Whatever came while that could not be stopped counts now.
function enter_cell(run) {
  Atomics.store(heard, kInCell, 1);
  if (Atomics.exchange(heard, kSignal, 0) === 0) return;
  Atomics.store(heard, kInCell, 0);
  take_what_is_there();
  if (meant === run.id) throw interrupted();
  Atomics.store(heard, kInCell, 1);
}
const leave_cell = () => Atomics.store(heard, kInCell, 0);

function watch_over_loop(ready) {
  const {Worker} = require('worker_threads');
  const hear = `const {internalBinding} = require('internal/test/binding');
    const {Signal} = internalBinding('signal_wrap');
    const signal = new Signal();
    signal.onsignal = told;
    signal.start(2);`;
  const watcher = new Worker(`
    const {Session} = require('inspector');
    const {parentPort, workerData: heard} = require('worker_threads');
    const session = new Session();
    session.connectToMainThread();
    let signals = 0;
    function told() {
      signals += 1;
      Atomics.store(heard, ${kSignal}, 1);
      for (let seen; (seen = Atomics.load(heard, ${kHeard})) < signals;) {
        if (Atomics.wait(heard, ${kHeard}, seen, 50) === 'timed-out') break;
      }
      if (Atomics.load(heard, ${kHeard}) >= signals || Atomics.load(heard, ${kInCell}) === 0) return;
      Atomics.store(heard, ${kStopped}, 1);
      session.post('Runtime.terminateExecution');
    }
    ${hear}
    parentPort.postMessage('ready');`, {eval: true, workerData: heard});
  watcher.unref();
  watcher.on('message', ready);
  watcher.on('error', (error) => {
    write_all(2, `${error.message}\n`);
    exit(1);
  });
  const told = () => {
    Atomics.add(heard, kHeard, 1);
    Atomics.notify(heard, kHeard);
    interrupt();
  };
  new Function('require', 'told', hear + 'signal.unref(); return signal;')(require, told);
}

function start() {
  replace_stream('stdout', 1);
  replace_stream('stderr', 2);
  replace_console();
  Object.defineProperty(globalThis, '$kernel', {value: kernel, enumerable: false});
  hidden('display', display);
  hidden('module', new Module('cell'));
  hidden('exports', globalThis.module.exports);
  if (__filename === kSource) fs.closeSync(4);
  // What children of the cell inherit is not our start but a plain one.
  process.execArgv.length = 0;
  process.argv.length = 1;

  const stray = (error) => {
    leave_cell();
    if (error === null && Atomics.exchange(heard, kStopped, 0) === 1) error = interrupted();  // how a stopped loop looks from here
    if (current) fail(current, error);
    else write_all(2, `${describe(error).traceback.join('\n')}\n`);
  };
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);

  handle = (frame) => {
    if (frame.op === 'shown') answered = true;
    if (frame.op === 'interrupt') meant = frame.id;
    if (frame.op !== 'run') return;
    waiting.push(frame);
  };
  watch_over_loop(() => send({op: 'ready', language: kLanguage, version: process.versions.node}));
  read_frames();
}

start();
