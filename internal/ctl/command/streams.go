package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Exit statuses, stable for scripts.
const (
	StatusOK          = 0
	StatusRefused     = 1
	StatusUsage       = 2
	StatusUnreachable = 3
	// StatusRemoved is how a member ends that the cluster has removed for ever: a supervisor should not start it again
	// (systemd: RestartPreventExitStatus=4).
	StatusRemoved     = 4
	StatusInterrupted = 130
)

// Exit statuses of single commands; `quorate doctor` has 5.
const (
	// StatusNotProved is how `quorate audit verify` ends that found no damage, and no head of the cluster that agrees.
	StatusNotProved = 6
)

// Streams is what a command line is connected to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string // as os.Environ
	Self     string   // how the person called this program
	Terminal bool     // Out is a terminal: tables may be refreshed in place
	Attended bool     // In is a terminal: there is an operator to answer questions
	// Secret asks for a password without showing it; nil if no operator is there.
	Secret func(prompt string) (string, error)
}

// Env returns a variable of the environment, empty if it is not set.
func (s Streams) Env(key string) string {
	for _, pair := range s.Environ {
		if k, v, _ := strings.Cut(pair, "="); k == key {
			return v
		}
	}
	return ""
}

// Failure is an error with the status that it ends the program with.
type Failure struct {
	Status int
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Usagef is the error of a command line that makes no sense.
func Usagef(format string, args ...any) error {
	return &Failure{StatusUsage, fmt.Errorf(format, args...)}
}

// Refused is the error of what the cluster refused, or what cannot be done.
func Refused(err error) error { return &Failure{StatusRefused, err} }

// Unreachable is the error of a cluster that cannot be reached or did not answer in time.
func Unreachable(err error) error { return &Failure{StatusUnreachable, err} }

// ErrQuiet ends a command with StatusRefused whose output has said everything already.
var ErrQuiet = errors.New("ctl: said already")

// Confirm asks whether to go on; the error of a refusal says that nothing was changed.
func (s Streams) Confirm(ctx context.Context) error {
	fmt.Fprint(s.Err, "Proceed? [y/N] ")
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted; it ends with the process
		line, _ := bufio.NewReader(s.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case word := <-answer:
		if word == "y" || word == "yes" {
			return nil
		}
		return Refused(errors.New("nothing was changed"))
	case <-ctx.Done():
		fmt.Fprintln(s.Err, "\nnothing was changed")
		return ctx.Err()
	}
}

// AskSecret asks for a password on the terminal, which does not show it.
func AskSecret(prompt string) (string, error) {
	fmt.Fprint(os.Stderr, prompt)
	text, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(text), err
}

// TerminalHeight returns the lines of the terminal, 0 if they are unknown.
func TerminalHeight() int {
	_, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return height
}

// TerminalWidth returns the columns of the terminal, 0 if they are unknown.
func TerminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}
