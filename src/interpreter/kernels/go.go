// The kernel of Go (1.18 or newer). It is compiled by the line in kernels.inc that starts it, and gets the directory of that as
// its argument, which it removes.
//
// A cell with a package clause is a program: it is built and run as it is. Any other cell is a snippet: imports, functions, types,
// constants and variables are remembered, statements are run once, and a last expression is shown. Each run is a program of its
// own that holds the cell and those declarations of earlier cells that it uses, so a variable has the value of its declaration
// again in every cell.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const maxFrame = 64 << 20

type message map[string]interface{}

// ---- Frames

func send(out io.Writer, frame message) {
	body, err := json.Marshal(frame)
	if err != nil || len(body) > maxFrame {
		body, _ = json.Marshal(message{"op": "error", "id": frame["id"], "ename": "ResultTooLarge", "evalue": "the result is longer than 64 MiB", "traceback": []string{}})
	}
	head := make([]byte, 4)
	binary.BigEndian.PutUint32(head, uint32(len(body)))
	if _, err := out.Write(append(head, body...)); err != nil {
		leave(0)
	}
}

func receive(in io.Reader) (op, id, code string, err error) {
	head := make([]byte, 4)
	if _, err = io.ReadFull(in, head); err != nil {
		return
	}
	length := binary.BigEndian.Uint32(head)
	if length > maxFrame {
		return "", "", "", errors.New("frame too long")
	}
	body := make([]byte, length)
	if _, err = io.ReadFull(in, body); err != nil {
		return
	}
	var frame struct{ Op, ID, Code string }
	err = json.Unmarshal(body, &frame)
	return frame.Op, frame.ID, frame.Code, err
}

// ---- Cells

// A piece of a cell at its top level.
type piece struct {
	kind  token.Token // IMPORT, FUNC, TYPE, CONST, VAR; ILLEGAL for a statement
	text  string
	line  int
	names []string // what it declares
	owner string   // the type of a method
}

// Cuts a cell where a statement could end: at semicolons outside brackets, which Go's own scanner puts at ends of lines.
func cut(code string) ([]piece, error) {
	files := token.NewFileSet()
	file := files.AddFile("cell", -1, len(code))
	var scan scanner.Scanner
	var wrong error
	scan.Init(file, []byte(code), func(at token.Position, text string) {
		if wrong == nil {
			wrong = fmt.Errorf("%d:%d: %s", at.Line, at.Column, text)
		}
	}, 0)
	type found struct {
		token token.Token
		text  string
	}
	var pieces []piece
	var words []found
	depth, start := 0, -1
	for {
		pos, tok, text := scan.Scan()
		offset := file.Offset(pos)
		if tok == token.EOF || (tok == token.SEMICOLON && depth == 0) {
			if start >= 0 {
				each := piece{kind: token.ILLEGAL, text: strings.TrimRight(code[start:offset], " \t\r\n"), line: file.Line(file.Pos(start))}
				first := words[0].token
				switch first {
				case token.IMPORT, token.TYPE, token.CONST, token.VAR:
					each.kind = first
				case token.FUNC:
					if len(words) > 1 && words[1].token == token.IDENT {
						each.kind, each.names = first, []string{words[1].text}
					} else if closing := matching(len(words), func(i int) token.Token { return words[i].token }); closing > 0 && closing+2 < len(words) &&
						words[closing+1].token == token.IDENT && words[closing+2].token == token.LPAREN {
						each.kind = first
						for _, word := range words[2:closing] {
							if word.token == token.IDENT {
								each.owner = word.text // the last identifier before brackets is the type
							}
							if word.token == token.LBRACK {
								break
							}
						}
						each.names = []string{each.owner + "." + words[closing+1].text}
					}
				}
				pieces = append(pieces, each)
			}
			words, start = nil, -1
			if tok == token.EOF {
				break
			}
			continue
		}
		switch tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		}
		if depth < 0 && wrong == nil {
			wrong = fmt.Errorf("%d:%d: unexpected %s", file.Line(pos), file.Position(pos).Column, tok)
		}
		if start < 0 {
			start = offset
		}
		words = append(words, found{tok, text})
	}
	if wrong == nil && depth > 0 {
		wrong = fmt.Errorf("%d:1: the cell ends inside brackets", strings.Count(code, "\n")+1)
	}
	return pieces, wrong
}

// Where the parenthesis that opens at token 1 closes; 0 when it does not open there.
func matching(count int, at func(int) token.Token) int {
	if count < 2 || at(1) != token.LPAREN {
		return 0
	}
	depth := 0
	for i := 1; i < count; i++ {
		switch at(i) {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// A declaration that later cells may use. Variables keep what they were made from: names (some "_" by now), type and values.
type declaration struct {
	piece
	tail string // of a variable: what follows its names
	cell int
}

func (d *declaration) source() string {
	if d.kind != token.VAR {
		return d.text
	}
	return "var " + strings.Join(d.names, ", ") + " " + d.tail
}

type kernel struct {
	dir          string
	out          io.Writer
	count        int
	declarations []*declaration
	imports      map[string]string // name → `alias "path"`
	dot          []string          // imports without a name
	mu           sync.Mutex
	child        *os.Process
	interrupted  bool
	begun        string // the last cell that began
	cancelled    string // the last cell that was to be interrupted
}

// Splits a declaration with `var` or `const` or `type`, or a `:=`, into parts that can be replaced one by one.
func declared(each piece) []*declaration {
	text := each.text
	if each.kind == token.ILLEGAL {
		at := strings.Index(text, ":=")
		var names []string
		for _, name := range strings.Split(text[:at], ",") {
			names = append(names, strings.TrimSpace(name))
		}
		p := each
		p.kind, p.names = token.VAR, names
		return []*declaration{{piece: p, tail: "=" + text[at+2:]}}
	}
	files := token.NewFileSet()
	const head = "package p;"
	tree, err := parser.ParseFile(files, "", head+text, 0)
	if err != nil || len(tree.Decls) != 1 {
		return nil
	}
	general, ok := tree.Decls[0].(*ast.GenDecl)
	if !ok {
		return []*declaration{{piece: each}}
	}
	at := func(pos token.Pos) int { return files.Position(pos).Offset - len(head) }
	if general.Tok == token.CONST { // iota ties the lines of a group together
		p := each
		for _, spec := range general.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				p.names = append(p.names, name.Name)
			}
		}
		return []*declaration{{piece: p}}
	}
	var all []*declaration
	for _, spec := range general.Specs {
		p := piece{kind: general.Tok, line: each.line + strings.Count(text[:at(spec.Pos())], "\n")}
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				p.names = append(p.names, name.Name)
			}
			all = append(all, &declaration{piece: p, tail: text[at(spec.Names[len(spec.Names)-1].End()):at(spec.End())]})
		case *ast.TypeSpec:
			p.names, p.text = []string{spec.Name.Name}, "type "+text[at(spec.Pos()):at(spec.End())]
			all = append(all, &declaration{piece: p})
		}
	}
	return all
}

// Whether a statement is `a, b := …`.
func defines(each piece) bool {
	if each.kind != token.ILLEGAL {
		return false
	}
	tree, err := parser.ParseFile(token.NewFileSet(), "", "package p;func _() {\n"+each.text+"\n}", 0)
	if err != nil {
		return false
	}
	body := tree.Decls[0].(*ast.FuncDecl).Body.List
	assign, ok := first(body).(*ast.AssignStmt)
	return ok && len(body) == 1 && assign.Tok == token.DEFINE
}

func first(list []ast.Stmt) ast.Stmt {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// ---- From a cell to a program

// The name under which a package is used when an import does not say.
func package_name(from string) string {
	base := path.Base(from)
	if regexp.MustCompile(`^v[0-9]+$`).MatchString(base) {
		base = path.Base(path.Dir(from))
	}
	base = regexp.MustCompile(`\.v[0-9]+$`).ReplaceAllString(base, "")
	return strings.ReplaceAll(strings.TrimPrefix(base, "go-"), "-", "_")
}

// Packages that a snippet may use without importing them.
var known = map[string]string{}

func init() {
	for _, each := range strings.Fields(`bufio bytes context errors fmt io log math os regexp sort strconv strings sync time unicode
		bytes container/heap container/list crypto/md5 crypto/sha1 crypto/sha256 encoding/base64 encoding/binary encoding/csv
		encoding/hex encoding/json encoding/xml html io/ioutil math/big math/bits math/cmplx math/rand net net/http net/url os/exec
		os/signal path path/filepath reflect runtime sync/atomic syscall text/tabwriter text/template unicode/utf8 unsafe`) {
		known[path.Base(each)] = each
	}
}

func (k *kernel) add_imports(text string) error {
	tree, err := parser.ParseFile(token.NewFileSet(), "", "package p;"+text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range tree.Imports {
		from, _ := strconv.Unquote(spec.Path.Value)
		name, line := package_name(from), spec.Path.Value
		if spec.Name != nil {
			name, line = spec.Name.Name, spec.Name.Name+" "+line
		}
		if name == "_" || name == "." {
			k.dot = append(k.dot, line)
		} else {
			k.imports[name] = line
		}
	}
	return nil
}

// Identifiers of a file that nothing in it declares.
func unresolved(source string) (map[string]bool, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, each := range tree.Unresolved {
		names[each.Name] = true
	}
	return names, nil
}

const helper = `package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

var kernelPipe = os.NewFile(3, "kernel")

func init() { syscall.CloseOnExec(3) }

func kernelSay(kind, text string) { fmt.Fprintf(kernelPipe, "%s %d\n%s", kind, len(text), text) }

func kernelShow(values ...interface{}) {
	text := ""
	for i, value := range values {
		if i > 0 {
			text += " "
		}
		switch value.(type) {
		case error, fmt.Stringer:
			text += fmt.Sprintf("%v", value)
		default:
			text += fmt.Sprintf("%#v", value)
		}
	}
	kernelSay("result", text)
}

func kernelPanic() {
	if cause := recover(); cause != nil {
		kernelSay("panic", fmt.Sprint(cause))
		kernelSay("stack", string(debug.Stack()))
		os.Exit(2)
	}
}
`

// The program of a snippet. `show` asks for the value of its last expression.
type snippet struct {
	pieces []piece
	fresh  []*declaration // what this cell declares outside of main
	later  []*declaration // what its statements declare, for later cells
	body   string
	value  bool // the last statement is an expression
}

func position(cell, line int) string { return fmt.Sprintf("/*line cell_%d.go:%d:1*/", cell, line) }

func (k *kernel) assemble(code string, show bool) (*snippet, string, error) {
	pieces, err := cut(code)
	if err != nil {
		return nil, "", err
	}
	s := &snippet{pieces: pieces}
	var statements []piece
	outside := ""
	for _, each := range pieces {
		switch {
		case each.kind == token.IMPORT:
			if err := k.add_imports(each.text); err != nil {
				return nil, "", fmt.Errorf("%d:1: %v", each.line, err)
			}
		case each.kind == token.FUNC && each.names[0] == "main":
			each.kind = token.ILLEGAL
			each.text = regexp.MustCompile(`^func\s+main`).ReplaceAllString(each.text, "func") + "()"
			statements = append(statements, each)
		case each.kind != token.ILLEGAL:
			all := declared(each)
			if all == nil {
				all = []*declaration{{piece: each}} // the compiler will say what is wrong
			}
			for _, d := range all {
				d.cell = k.count
			}
			s.fresh = append(s.fresh, all...)
			outside += each.text + "\n"
		default:
			statements = append(statements, each)
		}
	}

	used, _ := unresolved("package p\n" + outside)
	for i, each := range statements {
		last := i == len(statements)-1
		if _, err := parser.ParseExpr(each.text); err == nil && last && !prints(each.text) {
			s.value = true
			if show {
				s.body += "kernelShow(" + position(k.count, each.line) + each.text + ")\n"
				continue
			}
		}
		if !defines(each) {
			s.body += position(k.count, each.line) + each.text + "\n"
			continue
		}
		for _, d := range declared(each) {
			d.cell = k.count
			shared := false
			for _, name := range d.names {
				shared = shared || used[name]
			}
			if shared { // functions of this cell use it
				s.fresh = append(s.fresh, d)
				continue
			}
			s.later = append(s.later, d)
			s.body += position(k.count, each.line) + each.text + "\n"
			for _, name := range d.names {
				if name != "_" {
					s.body += "_ = " + name + "\n"
				}
			}
		}
	}
	return s, k.program(s), nil
}

// Output is what such a call is for, not the number of bytes that it returns.
func prints(text string) bool {
	return regexp.MustCompile(`^\s*(fmt\.F?[pP]rint(f|ln)?|log\.\w+|println|print|panic|close|delete|wg\.\w+|\w+\.(Lock|Unlock|Wait|Done|Add|Close))\(`).MatchString(text)
}

// The cell, the declarations that it uses, and those that these use.
func (k *kernel) program(s *snippet) string {
	mine := map[string]bool{}
	for _, d := range s.fresh {
		for _, name := range d.names {
			mine[name] = true
		}
	}
	var taken []*declaration
	has := map[*declaration]bool{}
	text := func(imports []string) string {
		out := "package main\n\n"
		for _, line := range imports {
			out += "import " + line + "\n"
		}
		for _, d := range append(append([]*declaration{}, taken...), s.fresh...) {
			out += "\n" + position(d.cell, d.line) + d.source() + "\n"
		}
		return out + "\nfunc main() {\ndefer kernelPanic()\n" + s.body + "}\n"
	}
	imports := append([]string{}, k.dot...)
	for {
		names, err := unresolved(text(nil))
		if err != nil {
			return text(imports)
		}
		grown := false
		types := map[string]bool{}
		for _, d := range append(append([]*declaration{}, taken...), s.fresh...) {
			if d.kind == token.TYPE {
				types[d.names[0]] = true
			}
		}
		for _, d := range k.declarations {
			wanted := d.owner != "" && types[d.owner] && !mine[d.names[0]]
			for _, name := range d.names {
				wanted = wanted || (names[name] && !mine[name])
			}
			if wanted && !has[d] {
				taken, grown, has[d] = append(taken, d), true, true
			}
		}
		if grown {
			continue
		}
		for _, name := range sorted(names) {
			if line, there := k.imports[name]; there {
				imports = append(imports, line)
			} else if from, there := known[name]; there {
				imports = append(imports, strconv.Quote(from))
			}
		}
		return text(imports)
	}
}

func sorted(names map[string]bool) []string {
	var all []string
	for name := range names {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// What a cell declared takes the place of what had its names.
func (k *kernel) remember(s *snippet) {
	for _, d := range append(append([]*declaration{}, s.fresh...), s.later...) {
		replaced := map[string]bool{}
		for _, name := range d.names {
			if name != "_" {
				replaced[name] = true
			}
		}
		var kept []*declaration
		for _, old := range k.declarations {
			left := 0
			names := append([]string{}, old.names...)
			for i, name := range names {
				if replaced[name] {
					names[i] = "_"
				}
				if names[i] != "_" {
					left++
				}
			}
			if left == 0 && len(names) > 0 {
				continue
			}
			if old.kind == token.VAR {
				old.names = names
			}
			kept = append(kept, old)
		}
		k.declarations = append(kept, d)
	}
}

// ---- Building and running

type failure struct {
	name, value string
	lines       []string
}

// Runs a command so that an interrupt ends it. Standard output and error are ours.
func (k *kernel) execute(cmd *exec.Cmd, started func()) error {
	k.mu.Lock()
	if k.interrupted {
		k.mu.Unlock()
		return errors.New("interrupted")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a kernel that is killed leaves no cell behind
	err := cmd.Start()
	if err == nil {
		k.child = cmd.Process
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if started != nil {
		started()
	}
	err = cmd.Wait()
	k.mu.Lock()
	k.child = nil
	k.mu.Unlock()
	return err
}

func (k *kernel) build(sources map[string]string) *failure {
	var names []string
	for name, text := range sources {
		file := filepath.Join(k.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return &failure{"KernelError", err.Error(), nil}
		}
		names = append(names, file)
	}
	sort.Strings(names)
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(k.dir, "cell")}, names...)...)
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := k.execute(cmd, nil)
	for _, name := range names {
		os.Remove(name)
	}
	if err == nil {
		return nil
	}
	return compile_error(said.String(), err, k.dir)
}

// The cell's own directory is there while it is built, so that a kernel which is killed later leaves nothing.
func (k *kernel) make_dir() (err error) {
	k.dir, err = os.MkdirTemp("", "go-cell.")
	return err
}

func (k *kernel) remove_dir() { os.RemoveAll(k.dir) }

func compile_error(said string, err error, dir string) *failure {
	var lines []string
	value := ""
	for _, line := range strings.Split(strings.TrimSpace(said), "\n") {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		line = strings.TrimPrefix(strings.ReplaceAll(line, dir+"/", ""), "./")
		lines = append(lines, line)
		if value == "" {
			value = regexp.MustCompile(`^\S+?\.go:[0-9]+(:[0-9]+)?: `).ReplaceAllString(line, "")
		}
	}
	if value == "" {
		value = err.Error()
	}
	return &failure{"CompileError", value, lines}
}

// Runs what was built. The value that it shows, if any.
func (k *kernel) launch(piped bool) (string, bool, *failure) {
	cmd := exec.Command(filepath.Join(k.dir, "cell"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	said := map[string]string{}
	done := make(chan bool, 1)
	done <- true
	if piped {
		read, write, err := os.Pipe()
		if err != nil {
			return "", false, &failure{"KernelError", err.Error(), nil}
		}
		cmd.ExtraFiles = []*os.File{write}
		<-done
		go func() {
			read_records(read, said)
			read.Close()
			done <- true
		}()
		defer write.Close()
		err = k.execute(cmd, k.remove_dir)
		write.Close()
		<-done
		return judged(said, err)
	}
	return judged(said, k.execute(cmd, k.remove_dir))
}

func read_records(from io.Reader, said map[string]string) {
	in := bufio.NewReader(io.LimitReader(from, maxFrame))
	for {
		var kind string
		var length int
		if _, err := fmt.Fscanf(in, "%s %d\n", &kind, &length); err != nil || length < 0 || length > maxFrame {
			return
		}
		text := make([]byte, length)
		if _, err := io.ReadFull(in, text); err != nil {
			return
		}
		said[kind] = string(text)
	}
}

func was_interrupted() *failure {
	return &failure{"KeyboardInterrupt", "the run was interrupted", []string{"KeyboardInterrupt: the run was interrupted"}}
}

func judged(said map[string]string, err error) (string, bool, *failure) {
	if cause, there := said["panic"]; there {
		lines := []string{"panic: " + cause}
		stack := strings.Split(said["stack"], "\n")
		for i := 0; i+1 < len(stack); i++ {
			if strings.Contains(stack[i+1], "cell_") && strings.HasPrefix(stack[i+1], "\t") {
				lines = append(lines, stack[i], strings.ReplaceAll(stack[i+1], "./", ""))
			}
		}
		return "", false, &failure{"panic", cause, lines}
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		// The whole group gets an interrupt: the cell may be gone before this process has heard of it.
		if how, known := ended.Sys().(syscall.WaitStatus); known && how.Signaled() && how.Signal() == syscall.SIGINT {
			return "", false, was_interrupted()
		}
	}
	if err != nil {
		return "", false, &failure{"ExitError", err.Error(), []string{err.Error()}}
	}
	value, there := said["result"]
	return value, there, nil
}

var program_clause = regexp.MustCompile(`^(\s|//[^\n]*\n|/\*(?s:.*?)\*/)*package\s+\w+`)

func (k *kernel) run(code string) (string, bool, *failure) {
	if err := k.make_dir(); err != nil {
		return "", false, &failure{"KernelError", err.Error(), nil}
	}
	defer k.remove_dir()
	if program_clause.MatchString(code) {
		name := fmt.Sprintf("cell_%d.go", k.count)
		if wrong := k.build(map[string]string{name: code}); wrong != nil {
			return "", false, wrong
		}
		return k.launch(false)
	}
	s, program, err := k.assemble(code, true)
	if err != nil {
		return "", false, syntax_error(k.count, err)
	}
	if len(s.pieces) == 0 {
		return "", false, nil
	}
	if strings.TrimSpace(s.body) == "" && len(s.fresh) == 0 { // imports only
		return "", false, nil
	}
	wrong := k.build(map[string]string{"main.go": program, "helper.go": helper})
	if wrong != nil && s.value && strings.Contains(wrong.value, "used as value") {
		if s, program, err = k.assemble(code, false); err == nil {
			wrong = k.build(map[string]string{"main.go": program, "helper.go": helper})
		}
	}
	if wrong != nil {
		return "", false, wrong
	}
	k.remember(s)
	if strings.TrimSpace(s.body) == "" { // declarations only: that they compile is all there is to do
		return "", false, nil
	}
	return k.launch(true)
}

func syntax_error(cell int, err error) *failure {
	text := err.Error()
	return &failure{"CompileError", "syntax error: " + regexp.MustCompile(`^[0-9]+:[0-9]+: `).ReplaceAllString(text, ""), []string{fmt.Sprintf("cell_%d.go:%s", cell, text)}}
}

func (k *kernel) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interrupted = true
	if k.child != nil {
		k.child.Kill()
	}
}

func leave(status int) {
	os.RemoveAll(os.Args[1])
	os.Exit(status)
}

func main() {
	runtime.LockOSThread()   // what is to end with its parent ends with the thread that started it
	os.RemoveAll(os.Args[1]) // this program, when it was compiled for this kernel
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	socket := os.NewFile(3, "execd")
	k := &kernel{out: socket, imports: map[string]string{}}

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for each := range signals {
			if each == syscall.SIGTERM { // an interrupt is for the cell's process; a frame says the rest
				leave(0)
			}
		}
	}()

	type request struct{ id, code string }
	requests := make(chan request, 1024)
	go func() {
		in := bufio.NewReaderSize(socket, 1<<16)
		for {
			op, id, code, err := receive(in)
			if err != nil { // execd is gone, or wants this kernel gone
				k.interrupt()
				k.remove_dir()
				leave(0)
			}
			switch op {
			case "run":
				requests <- request{id, code}
			case "interrupt":
				k.mu.Lock()
				k.cancelled = id
				begun := k.begun == id
				k.mu.Unlock()
				if begun {
					k.interrupt()
				}
			}
		}
	}()

	send(socket, message{"op": "ready", "language": "go", "version": strings.TrimPrefix(runtime.Version(), "go")})
	for each := range requests {
		k.count++
		k.mu.Lock()
		k.begun, k.interrupted = each.id, k.cancelled == each.id
		k.mu.Unlock()
		value, shown, wrong := k.run(each.code)
		k.mu.Lock()
		if k.interrupted {
			wrong = was_interrupted()
		}
		k.mu.Unlock()
		if wrong != nil {
			if wrong.lines == nil {
				wrong.lines = []string{}
			}
			send(socket, message{"op": "error", "id": each.id, "ename": wrong.name, "evalue": wrong.value, "traceback": wrong.lines})
		} else if shown {
			send(socket, message{"op": "result", "id": each.id, "count": k.count, "data": message{"text/plain": value}})
		}
		send(socket, message{"op": "done", "id": each.id, "count": k.count})
	}
}
