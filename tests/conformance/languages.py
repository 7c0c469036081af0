"""The same cells in every language: what the rules of the code interpreter are tried with.

A cell is a text; {flag} in one is a file that it makes when it has begun, {word} a text that it shows, {escaped} the same without
what TypeScript 4 takes for line ends. Bash has no values: what it gives, it prints."""

from dataclasses import dataclass

WORD = "ünï ☃ 🦊 \u2028 \u0085 end"


@dataclass(frozen=True)
class Language:
    name: str
    sets: str  # keeps 41 under a name
    gives: str  # 42, from that name
    declares: str  # a function that doubles
    calls: str  # 82, with that function and that name
    absent: str | None  # the error of `gives` where nothing was kept
    silent: str  # has no value
    prints: str  # {word} to standard output
    complains: str  # "wrong" and a line end to standard error
    quotes: str  # has {word} as its value
    quoted: str  # how that looks
    writes_bytes: str  # 61 00 ff fe 62 0a to standard output
    floods: str  # 100,000 lines of 99 times x
    fails: str  # prints "before" and fails in the second line of a function
    failure: tuple  # its name, its value, what the traceback shows
    misspelt: str
    refusal: str  # the name of the error of that
    spins: str
    sleeps: str
    pid: str  # of the kernel
    leaves: str  # ends its own process with the status 3
    survives: bool  # the context does
    leaves_child: str  # a process that goes on for a minute and holds the cell's output; gives its number
    directory: str
    colour: str  # the variable COLOUR of the environment
    displays: str | None = None  # prints and shows 0 to 4 in turn, then prints "end"
    shows_values: bool = True
    tells_errors_apart: bool = True  # from output

    def __str__(self):
        return self.name


PYTHON = Language(
    name="python",
    sets="kept = 41",
    gives="kept + 1",
    declares="def double(n):\n    return 2 * n",
    calls="double(kept)",
    absent="NameError",
    silent="quiet = 1",
    prints="print('{word}')",
    complains="import sys\nprint('wrong', file=sys.stderr)",
    quotes="'{word}'",
    quoted="'ünï ☃ 🦊 \\u2028 \\x85 end'",
    writes_bytes="import os\nos.write(1, b'a\\x00\\xff\\xfeb\\n'); None",
    floods="for _ in range(100_000): print('x' * 99)",
    fails="print('before')\ndef f():\n    raise KeyError('gone')\nf()",
    failure=("KeyError", "'gone'", "raise KeyError('gone')"),
    misspelt="def (",
    refusal="SyntaxError",
    spins="open('{flag}', 'w').close()\nwhile True: pass",
    sleeps="import time\nopen('{flag}', 'w').close()\ntime.sleep(60)",
    pid="import os\nos.getpid()",
    leaves="import os\nos._exit(3)",
    survives=False,
    leaves_child="import subprocess\nsubprocess.Popen(['sleep', '60']).pid",
    directory="import os\nprint(os.getcwd())",
    colour="import os\nprint(os.environ['COLOUR'])",
    displays="for n in range(5):\n    print(n)\n    display(n)\nprint('end')",
)

JAVASCRIPT = Language(
    name="javascript",
    sets="const kept = 41",
    gives="kept + 1",
    declares="function double(n) { return 2 * n }",
    calls="double(kept)",
    absent="ReferenceError",
    silent="const quiet = 1",
    prints="console.log('{word}')",
    complains="console.error('wrong')",
    quotes="'{word}'",
    quoted="'ünï ☃ 🦊 \u2028 \\x85 end'",
    writes_bytes="process.stdout.write(Buffer.from([97, 0, 255, 254, 98, 10])); undefined",
    floods="for (let i = 0; i < 100_000; i++) console.log('x'.repeat(99))",
    fails="console.log('before')\nfunction f() {\n  throw new RangeError('gone')\n}\nf()",
    failure=("RangeError", "gone", "cell_1.js:3"),
    misspelt="let let = 1 +",
    refusal="SyntaxError",
    spins="require('fs').writeFileSync('{flag}', '')\nwhile (true) {}",
    sleeps="require('fs').writeFileSync('{flag}', '')\nawait new Promise((wake) => setTimeout(wake, 60_000))",
    pid="process.pid",
    leaves="process.exit(3)",
    survives=False,
    leaves_child="require('child_process').spawn('sleep', ['60'], {stdio: 'inherit'}).pid",
    directory="console.log(process.cwd())",
    colour="console.log(process.env.COLOUR)",
    displays="for (let n = 0; n < 5; n++) { console.log(n); display(n) }\nconsole.log('end')",
)

TYPESCRIPT = Language(
    name="typescript",
    sets="const kept: number = 41",
    gives="kept! + 1",
    declares="function double<T extends number>(n: T): number { return 2 * n }",
    calls="double<number>(kept)",
    absent="ReferenceError",
    silent="interface Quiet { loud: false }",
    prints="const word: string = '{escaped}'\nconsole.log(word)",
    complains="console.error('wrong' as string)",
    quotes="'{escaped}' as string",
    quoted=JAVASCRIPT.quoted,
    writes_bytes="process.stdout.write(Buffer.from([97, 0, 255, 254, 98, 10] as number[])); undefined",
    floods="const line: string = 'x'.repeat(99)\nfor (let i: number = 0; i < 100_000; i++) console.log(line)",
    fails="interface Gone {\n  a: string\n}\nconsole.log('before')\nfunction f(): never {\n  throw new RangeError('gone')\n}\nf()",
    failure=("RangeError", "gone", "cell_1.ts:6"),
    misspelt="const n: = 1",
    refusal="SyntaxError",
    spins="const forever: boolean = true\nrequire('fs').writeFileSync('{flag}', '')\nwhile (forever) {}",
    sleeps="require('fs').writeFileSync('{flag}', '')\nawait new Promise<void>((wake) => setTimeout(wake, 60_000))",
    pid="process.pid as number",
    leaves="process.exit(3 as number)",
    survives=False,
    leaves_child="const child = require('child_process').spawn('sleep', ['60'] as string[], {stdio: 'inherit'})\nchild.pid",
    directory="console.log(process.cwd() as string)",
    colour="console.log(process.env.COLOUR as string)",
    displays="for (let n: number = 0; n < 5; n++) { console.log(n); display(n) }\nconsole.log('end')",
)

JAVA = Language(
    name="java",
    sets="int kept = 41;",
    gives="kept + 1",
    declares="int twice(int n) { return 2 * n; }",
    calls="twice(kept)",
    absent="CompilationException",
    silent="import java.util.zip.*;",
    prints='System.out.println("{word}");',
    complains='System.err.println("wrong");',
    quotes='"{word}"',
    quoted='"ünï ☃ 🦊 \u2028 \\205 end"',
    writes_bytes="System.out.write(new byte[] {97, 0, (byte) 255, (byte) 254, 98, 10});",
    floods='var line = "x".repeat(99);\nfor (int i = 0; i < 100_000; i++) System.out.println(line);',
    fails='System.out.println("before");\nint f() {\n  throw new IllegalStateException("gone");\n}\nf()',
    failure=("EvalException", "java.lang.IllegalStateException: gone", "at f ("),
    misspelt="int n = ;",
    refusal="CompilationException",
    spins='Files.createFile(Path.of("{flag}"));\nwhile (true) {}',
    sleeps='Files.createFile(Path.of("{flag}"));\nThread.sleep(60_000);',
    pid="ProcessHandle.current().pid()",
    leaves="System.exit(3);",
    survives=False,
    leaves_child='new ProcessBuilder("sleep", "60").inheritIO().start().pid()',
    directory='System.out.println(Path.of("").toAbsolutePath());',
    colour='System.out.println(System.getenv("COLOUR"));',
)

GO = Language(
    name="go",
    sets="var kept = 41",
    gives="kept + 1",
    declares="func double(n int) int { return 2 * n }",
    calls="double(kept)",
    absent="CompileError",
    silent="quiet := 1",
    prints='fmt.Println("{word}")',
    complains='fmt.Fprintln(os.Stderr, "wrong")',
    quotes='"{word}"',
    quoted='"ünï ☃ 🦊 \\u2028 \\u0085 end"',
    writes_bytes="var data = []byte{97, 0, 255, 254, 98, 10}\n_, _ = os.Stdout.Write(data)",
    floods='line := strings.Repeat("x", 99)\nfor i := 0; i < 100_000; i++ { fmt.Println(line) }',
    fails='func f() {\n\tpanic("gone")\n}\nfmt.Println("before")\nf()',
    failure=("panic", "gone", "cell_1.go:2"),
    misspelt="n := )",
    refusal="CompileError",
    spins='os.WriteFile("{flag}", nil, 0o644)\nfor {\n}',
    sleeps='os.WriteFile("{flag}", nil, 0o644)\ntime.Sleep(time.Minute)',
    pid="os.Getppid()",
    leaves="os.Exit(3)",
    survives=True,
    leaves_child='child := exec.Command("sleep", "60")\nchild.Stdout = os.Stdout\nchild.Start()\nchild.Process.Pid',
    directory="here, _ := os.Getwd()\nfmt.Println(here)",
    colour='fmt.Println(os.Getenv("COLOUR"))',
)

BASH = Language(
    name="bash",
    sets="kept=41",
    gives="echo $((kept + 1))",
    declares="double() { echo $(($1 * 2)); }",
    calls="double $kept",
    absent=None,
    silent="quiet=1",
    prints="echo '{word}'",
    complains="echo wrong >&2",
    quotes="echo '{word}'",
    quoted=WORD,
    writes_bytes="printf 'a\\x00\\xff\\xfeb\\n'",
    floods="printf -v line %099d; line=${line//0/x}; for ((i = 0; i < 100000; i++)); do echo $line; done",
    fails="echo before\nf() {\n  return 5\n}\nf",
    failure=("CommandExecError", "5", "exit status 5"),
    misspelt="if then",
    refusal="CommandExecError",
    spins="touch {flag}\nwhile :; do :; done",
    sleeps="touch {flag}\nsleep 60",
    pid="echo $$",
    leaves="exit 3",
    survives=True,
    leaves_child="sleep 60 & echo $!",
    directory="pwd",
    colour="echo $COLOUR",
    shows_values=False,
    tells_errors_apart=False,
)

LANGUAGES = (PYTHON, JAVASCRIPT, TYPESCRIPT, JAVA, GO, BASH)


def filled(cell, flag=""):
    return cell.replace("{flag}", flag).replace("{word}", WORD).replace("{escaped}", WORD.replace("\u2028", "\\u2028"))
