//go:build js && wasm

// Command quoratelab is the laboratory for a browser: the code of package lab as WebAssembly, in a Web Worker, which asks it
// questions (package player). `quoratesim lab --out DIR` builds it, with the page that goes with it.
package main

import (
	"os"
	"syscall/js"

	"github.com/quorate/quorate/internal/sim/lab/player"
)

// main gives the worker the function quorateLab(question, argument), which returns an answer of package player, as text. With
// arguments, questions each followed by theirs, it prints a line for each answer and ends: so tests run it in Node.
func main() {
	if args := os.Args[1:]; len(args) > 0 {
		for ; len(args) > 1; args = args[2:] {
			if _, err := os.Stdout.Write(append(player.Answer(args[0], args[1]), '\n')); err != nil {
				os.Exit(1)
			}
		}
		return
	}
	js.Global().Set("quorateLab", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if len(args) != 2 {
			return ""
		}
		return string(player.Answer(args[0].String(), args[1].String()))
	}))
	select {}
}
