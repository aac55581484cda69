package server

import "testing"

// Ensure that the words of a process that serves no client are a sentence, whether it is no member yet or not any more.
func TestStartupServer_texts(t *testing.T) {
	var u startupServer
	for _, row := range []struct {
		say        func(string)
		text, want string
	}{
		{u.say, "has lost its disk", "this process is no member yet: it has lost its disk"},
		{u.sayLost, "member m1 refused this member: it is old", "this process is no member any more: member m1 refused this member: it " +
			"is old"},
	} {
		if row.say(row.text); *u.text.Load() != row.want {
			t.Errorf("got %q, want %q", *u.text.Load(), row.want)
		}
	}
}
