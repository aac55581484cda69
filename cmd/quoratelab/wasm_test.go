//go:build !js

// Package main_test compares the laboratory's program for browsers with the same code built for this machine.
package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/sim/lab"
	"github.com/quorate/quorate/internal/sim/lab/player"
)

// long is a run as long as a link can ask for, with most members: in WebAssembly nothing interrupts it but itself.
const long = "protocol=joint&from=9&remove=9&fault=partition@0:1,2%7C3,4,5,6,7,8,9&fault=heal@5s"

// questions are all stories, with their rule and without, a table of runs by every protocol, and the rest that a page asks.
func questions() [][2]string {
	all := [][2]string{{player.AskPlay, long}, {player.AskCatalog, ""}, {player.AskCompare, "change=3&protocol=apply&seed=5"}, {player.AskPlay, "story=cinderella"}}
	for _, s := range lab.Stories() {
		all = append(all, [2]string{player.AskPlay, "story=" + s.Name}, [2]string{player.AskPlay, "rule=kept&story=" + s.Name})
	}
	for _, name := range lab.ProtocolNames() {
		for _, rest := range []string{
			"&from=3&to=5", "&from=5&to=3&seed=7&delay=25ms", "&from=3&to=3&remove=1,2,3&fault=leader-crash@1", "&from=4&to=5&fast=1&fault=lag:2",
			"&from=3&to=5&fault=partition@1:1,2%7C3,4,5&fault=heal@300ms", "&from=3&to=5&drop=direct-switch&fault=leader-restart@2%2B40ms",
		} {
			all = append(all, [2]string{player.AskPlay, "protocol=" + name + rest})
		}
	}
	return all
}

// Ensure that the program answers every question in a browser's engine with the bytes with which it answers natively.
func TestAnswer_sameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds for WebAssembly")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node here to run WebAssembly: `apt-get install nodejs`, or put node into PATH")
	}
	program := filepath.Join(t.TempDir(), "lab.wasm")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	runner := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
	asked := questions()
	args := []string{"--stack-size=8192", runner, program}
	for _, q := range asked {
		args = append(args, q[0], q[1])
	}
	run := exec.Command(node, args...)
	// Node is given no more of the environment than it needs: Go's runtime for it bounds arguments and environment together.
	run.Env = []string{"PATH=" + os.Getenv("PATH")}
	var errs bytes.Buffer
	run.Stderr = &errs
	out, err := run.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, errs.String())
	}
	answers := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(answers) != len(asked) {
		t.Fatalf("%d answers to %d questions", len(answers), len(asked))
	}
	total := 0
	for i, q := range asked {
		want := player.Answer(q[0], q[1])
		total += len(want)
		if !bytes.Equal(answers[i], want) {
			t.Errorf("%s %q: %d bytes in WebAssembly, %d natively; they differ from byte %d on", q[0], q[1], len(answers[i]), len(want),
				firstDifference(answers[i], want))
		}
	}
	t.Logf("%d answers of %d bytes are equal", len(asked), total)
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
