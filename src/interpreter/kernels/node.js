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

function read_frames(handle) {
  // execd is the only one on the other side: when it goes, so do we.
  const socket = new net.Socket({fd: 3, readable: true, writable: false});
  let chunks = [];
  let have = 0;
  socket.on('data', (chunk) => {
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

// What V8 gets for a cell: {code, async, names}. `names` become variables of the global object, whatever declared them, so that a
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
      edits.replace(node.start, node.start + node.kind.length, 'var');
    } else if (async && node.type === 'VariableDeclaration') {
      assign_instead(node, edits, names, null);
    } else if (async) {
      walk(node, (inner, parent) => {
        if (inner.type === 'VariableDeclaration' && inner.kind === 'var') assign_instead(inner, edits, names, parent);
      });
    }
    if (index === body.length - 1 && node.type === 'ExpressionStatement') {
      const {start, end} = node.expression;
      edits.insert(start, async ? 'return {value: (' : '$kernel.value = (');
      // The parentheses of `(a)` are no part of the expression's range.
      const tail = code.slice(end, node.end).replace(/;\s*$/, '');
      edits.replace(end, node.end, `${tail})${async ? '}' : ''};`);
      const lead = code.slice(node.start, start);
      if (lead.trim() !== '') {
        edits.list = edits.list.filter((each) => !(each.start === start && each.end === start));
        edits.insert(node.start, async ? 'return {value: (' : '$kernel.value = (');
      }
    }
  }
  if (!async) return {code: edits.apply(), async, names};
  const keep = hoisted.map((name) => `globalThis.${name} = ${name};`).join('');
  const declared = names.filter((name) => !hoisted.includes(name));
  const head = `${declared.length === 0 ? '' : `var ${[...new Set(declared)].join(', ')};`}(async () => {${keep}`;
  return {code: `${head}${edits.apply()}\n})()`, async, names};
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
    return (code) => Module.stripTypeScriptTypes(code, {mode: 'transform'});
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
  const options = {target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, isolatedModules: true, experimentalDecorators: true};
  // An import that only a later cell uses must stay.
  if (Number(ts.version.split('.')[0]) >= 5) options.verbatimModuleSyntax = true;
  else Object.assign(options, {preserveValueImports: true, importsNotUsedAsValues: ts.ImportsNotUsedAsValues.Preserve});
  return (code, name) => {
    const out = ts.transpileModule(code, {fileName: name.replace(/\.js$/, '.ts'), compilerOptions: options, reportDiagnostics: true});
    const wrong = (out.diagnostics ?? []).filter((each) => each.category === ts.DiagnosticCategory.Error && each.code < 2000);
    if (wrong.length > 0) {
      const {start = 0, messageText} = wrong[0];
      const line = code.slice(0, start).split('\n').length;
      const message = ts.flattenDiagnosticMessageText(messageText, '\n');
      const error = new SyntaxError(message);
      error.stack = `${name}:${line}\n${code.split('\n')[line - 1] ?? ''}\n\nSyntaxError: ${message}`;
      throw error;
    }
    return out.outputText;
  };
}

// A cell without a type in it needs no compiler, which saves its start. With "<" nobody can tell: `f<a>(b)` is both.
function to_javascript(code, name) {
  if (kLanguage === 'javascript') return code;
  if (!code.includes('<')) {
    try {
      parse(code);
      return code;
    } catch { /* types, or wrong */ }
  }
  strip ??= find_compiler();
  return strip(code, name);
}

// ---- Names that cells see ---------------------------------------------------------------------------------------------------

const hidden = (name, value) => Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});

const kernel = {
  value: undefined,
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

async function to_mime(value) {
  const own = value !== null && typeof value === 'object' ? value[kDisplay] : undefined;
  if (typeof own === 'function') {
    const data = {};
    for (const [type, each] of Object.entries(await own.call(value))) data[type] = typeof each === 'string' ? each : JSON.stringify(each);
    return data;
  }
  return {'text/plain': util.inspect(value, {colors: false, maxArrayLength: 1000, maxStringLength: 1024 * 1024})};
}

const interrupted = () => Object.assign(new Error('the run was interrupted'), {name: 'KeyboardInterrupt', stack: 'KeyboardInterrupt: the run was interrupted'});

function describe(error) {
  if (error === null || typeof error !== 'object' || !util.types.isNativeError(error)) {
    const text = util.inspect(error);
    return {ename: 'Thrown', evalue: text, traceback: [`Uncaught ${text}`]};
  }
  if (error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') error = interrupted();
  const ours = new RegExp(`\\(?(${__filename.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}|node:vm|node:internal/)`);
  const lines = [];
  let lead = '';
  for (let each = error, depth = 0; util.types.isNativeError(each) && depth < 10; each = each.cause, depth++) {
    const own = `${lead}${each.stack ?? each}`.split('\n');
    lines.push(...own.filter((line) => !(/^\s+at /.test(line) && ours.test(line))));
    for (const inner of each.errors ?? []) lines.push(`  ${inner}`);
    lead = 'Caused by: ';
  }
  return {ename: String(error.name ?? 'Error'), evalue: String(error.message ?? ''), traceback: lines};
}

// ---- Runs -------------------------------------------------------------------------------------------------------------------

let count = 0;
let current = null;  // the run that has not said "done" yet
const waiting = [];

function finish(run, frame) {
  if (current !== run) return;  // it was interrupted, and what it did since is nobody's
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
  const run = {id, number: count};
  current = run;
  evaluate(run, String(code)).catch((error) => fail(run, error));
}

async function evaluate(run, code) {
  const name = `cell_${run.number}.js`;
  const cell = understood(to_javascript(code, name), name);
  refresh_require();
  make_room(cell.names);
  kernel.value = undefined;
  const script = new vm.Script(cell.code, {filename: name, importModuleDynamically: loader()});
  let value = interruptible(script);
  if (!cell.async) value = kernel.value;
  kernel.value = undefined;
  if (util.types.isPromise(value)) {
    watch_over_loop();
    value = await value;
    // A promise as the last value is waited for: `main()` at the end of a cell means its work, not the promise.
    if (cell.async) value = await value?.value;
  }
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
    return {code: source, async: false, names: []};
  }
}

// ---- Interrupts -------------------------------------------------------------------------------------------------------------

const interrupt = () => { if (current) fail(current, interrupted()); };

// Code that runs at once is stopped by V8, through `breakOnSigint`. Code that goes on after an await is out of reach of that: see
// watch_over_loop().
const interruptible = (script) => script.runInThisContext({breakOnSigint: !watcher});

// A loop after a wait blocks the only thread that could notice the signal. A second thread takes the signal over, tells the first,
// and when that does not listen stops what it does through the inspector. It is made for the first run that awaits: most
// never do. From then on V8's own way must not be used here any more, as there is one signal handler for both threads.
let watcher;
const heard = new Int32Array(new SharedArrayBuffer(8));  // the signal was heard; it was not, and so a loop was stopped
function watch_over_loop() {
  if (watcher) return;
  const {Worker} = require('worker_threads');
  watcher = new Worker(`
    const vm = require('vm');
    const {Session} = require('inspector');
    const {parentPort, workerData: heard} = require('worker_threads');
    const session = new Session();
    session.connectToMainThread();
    const told = () => {
      Atomics.store(heard, 0, 0);
      parentPort.postMessage('interrupt');
      if (Atomics.wait(heard, 0, 0, 50) !== 'timed-out') return;
      Atomics.store(heard, 1, 1);
      session.post('Runtime.terminateExecution');
    };
    const wait = new vm.Script('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)');
    // The outer one keeps the signal handler in place while the inner one is entered again.
    globalThis.inner = () => { for (;;) try { wait.runInThisContext({breakOnSigint: true}); } catch { told(); } };
    const outer = new vm.Script('inner()');
    for (;;) try { outer.runInThisContext({breakOnSigint: true}); } catch { told(); }`, {eval: true, workerData: heard});
  watcher.unref();
  watcher.on('message', () => {
    Atomics.store(heard, 0, 1);
    Atomics.notify(heard, 0);
    interrupt();
  });
  watcher.on('error', () => {});
}

function start() {
  replace_stream('stdout', 1);
  replace_stream('stderr', 2);
  replace_console();
  Object.defineProperty(globalThis, '$kernel', {value: kernel, enumerable: false});
  hidden('display', (value) => to_mime(value).then((data) => send({op: 'display', id: current?.id ?? '', data})));
  hidden('module', new Module('cell'));
  hidden('exports', globalThis.module.exports);
  if (__filename === kSource) fs.closeSync(4);
  // What children of the cell inherit is not our start but a plain one.
  process.execArgv.length = 0;
  process.argv.length = 1;

  process.on('SIGINT', interrupt);
  const stray = (error) => {
    if (error === null && Atomics.exchange(heard, 1, 0) === 1) error = interrupted();  // how a stopped loop looks from here
    if (current) fail(current, error);
    else write_all(2, `${describe(error).traceback.join('\n')}\n`);
  };
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);

  read_frames((frame) => {
    if (frame.op !== 'run') return;
    waiting.push(frame);
    next();
  });
  send({op: 'ready', language: kLanguage, version: process.versions.node});
}

start();
