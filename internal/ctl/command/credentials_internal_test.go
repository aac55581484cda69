package command

import (
	"errors"
	"io"
	"testing"
)

// Ensure that a password that is missing is asked for, once, where there is an operator to answer.
func TestIdentity_login(t *testing.T) {
	for _, row := range []struct {
		name, user, password string
		answer               string
		failure              error
		asked                int
		want                 string
		refused              bool
	}{
		{name: "nobody"},
		{name: "both in one", user: "bob:pw", want: "pw"},
		{name: "both in two", user: "bob", password: "pw", want: "pw"},
		{name: "asked for", user: "bob", answer: "pw", asked: 1, want: "pw"},
		{name: "asked for after a colon", user: "bob:", answer: "pw", asked: 1, want: "pw"},
		{name: "an empty answer", user: "bob", asked: 2, refused: true},
		{name: "the terminal is gone", user: "bob", failure: io.EOF, asked: 2, refused: true},
		{name: "two passwords", user: "bob:pw", password: "other", refused: true},
	} {
		asked := 0
		i := identity{user: row.user, password: row.password, ask: func(string) (string, error) {
			asked++
			return row.answer, row.failure
		}}
		for range 2 { // a command may connect more than once
			_, got, err := i.login()
			if refusal, ok := errors.AsType[*Failure](err); got != row.want || ok != row.refused || ok && refusal.Status != StatusUsage {
				t.Errorf("%s: got %q, %v, want %q", row.name, got, err, row.want)
			}
		}
		if asked != row.asked {
			t.Errorf("%s: asked %d times, want %d", row.name, asked, row.asked)
		}
	}
}
