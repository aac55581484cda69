package nextlevel_test

import (
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
)

// Ensure that the released build knows all commands, and that changes of users, also those that name a user, and no other
// commands need the made-up level.
func TestNeeds(t *testing.T) {
	change := &auth.Change{Kind: auth.UserAdd, User: "alice", Hash: []byte("h")}
	for name, row := range map[string]struct {
		command kv.Command
		next    bool
	}{
		"a change of users":         {kv.Command{Auth: change}, true},
		"one in root's name":        {kv.Command{Auth: change, By: auth.Credentials{User: "root", Revision: 3}}, true},
		"a put":                     {kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, false},
		"a put in somebody's name":  {kv.Command{Put: &kv.PutOp{Key: []byte("k")}, By: auth.Credentials{User: "a", Revision: 3}}, false},
		"what raises the level":     {kv.Command{Raise: &kv.RaiseOp{Level: nextlevel.Level}}, false},
		"what a member makes known": {kv.Command{Publish: &kv.PublishOp{Member: 1}}, false},
	} {
		payload := row.command.Append(nil)
		want, known := kv.Needs(payload)
		if want < level.First || want > level.Own || !known {
			t.Errorf("%s needs level %d of the build that ships, %t", name, want, known)
		}
		if row.next {
			want = nextlevel.Level
		}
		if needs, known := nextlevel.Needs(payload); needs != want || !known {
			t.Errorf("%s needs level %d, %t, want %d", name, needs, known, want)
		}
	}
	if _, known := nextlevel.Needs([]byte{1, 200}); known {
		t.Error("a command that there is not is known")
	}
}
