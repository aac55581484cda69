package permits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/permits"
)

// story returns laws, after users were made, authentication was enabled, and alice, who may write the keys between a and c, got
// another password and then lost her role.
func story(t *testing.T) (laws *permits.Laws, said *[]string, enabled, password, revoked int) {
	t.Helper()
	laws, said = &permits.Laws{}, new([]string)
	laws.Init(func(_, format string, args ...any) { *said = append(*said, fmt.Sprintf(format, args...)) })
	u, index := permits.NewUsers(), consensus.Index(0)
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root"}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.RoleAdd, Role: "r"}, {Kind: auth.UserAdd, User: "alice", Hash: []byte("old")},
		{Kind: auth.GrantPermission, Role: "r", Permission: auth.Permission{Access: auth.Write, Key: []byte("a"), End: []byte("b")}},
		{Kind: auth.GrantPermission, Role: "r", Permission: auth.Permission{Access: auth.ReadWrite, Key: []byte("b"), End: []byte("c")}},
		{Kind: auth.UserGrantRole, User: "alice", Role: "r"}, {Kind: auth.Enable, Secret: []byte("s")},
		{Kind: auth.UserPassword, User: "alice", Hash: []byte("new")}, {Kind: auth.UserRevokeRole, User: "alice", Role: "r"},
	} {
		next, changed, err := u.Change(&c)
		if err != nil || !changed {
			t.Fatalf("%+v: %v, %t", c, err, changed)
		}
		u = next
		index++
		laws.Began(index, 1, &c, u)
	}
	return laws, said, int(index) - 2, int(index) - 1, int(index)
}

// Ensure that a permission or a refusal is right if it was so at one moment between call and return, and a violation otherwise.
func TestLaws_Told(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("a")}}
	wipe := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte("c")}}
	more := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte("ca")}}
	reads := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte("c"), PrevKV: true}}
	alice := permits.Who{User: "alice", Certificate: true}
	former := permits.Who{User: "alice", Since: 5, Secret: "s"}
	laws, said, enabled, password, revoked := story(t)
	for _, row := range []struct {
		name    string
		since   int
		who     permits.Who
		command *kv.Command
		refused error
		right   bool
	}{
		{"a put that was permitted at first", enabled, alice, put, nil, true},
		{"a put after the role was revoked", revoked, alice, put, nil, false},
		{"a refusal that came before the role was revoked", enabled, alice, put, auth.ErrPermissionDenied, true},
		{"two ranges that meet cover a third", password, alice, wipe, nil, true},
		{"two ranges that meet cover no more", password, alice, more, nil, false},
		{"who may write a range may not read it", password, alice, reads, nil, false},
		{"a token, before its password was changed", enabled, former, put, nil, true},
		{"a token of a former password", password, former, put, nil, false},
		{"nobody, before authentication was enabled", enabled - 1, permits.Who{}, put, nil, true},
		{"nobody, after it was", enabled, permits.Who{}, put, nil, false},
		{"root is refused", enabled, permits.Who{User: "root", Certificate: true}, more, auth.ErrPermissionDenied, false},
	} {
		*said = nil
		laws.Told(row.since, &row.who, row.command, row.refused)
		if right := len(*said) == 0; right != row.right {
			t.Errorf("%s: %s", row.name, strings.Join(*said, "; "))
		}
	}
}

// Ensure that a login must agree with a password at one moment, and that an acknowledged change advances Present.
func TestLaws_LoggedIn(t *testing.T) {
	laws, said, enabled, password, _ := story(t)
	laws.LoggedIn(enabled, "alice", "old", true)
	laws.LoggedIn(password, "alice", "new", true)
	laws.LoggedIn(password, "alice", "old", false)
	if len(*said) > 0 {
		t.Error(*said)
	}
	laws.LoggedIn(password, "alice", "old", true)
	laws.LoggedIn(password, "alice", "new", false)
	if len(*said) != 2 {
		t.Errorf("of two false answers %d were noticed", len(*said))
	}
	laws.Acknowledged(0, &auth.Change{Kind: auth.Enable, Secret: []byte("s")})
	laws.Reached(3, consensus.Index(password))
	if laws.Present() != enabled || laws.PresentAt(3) != password || laws.PresentAt(4) != 0 {
		t.Errorf("present: %d, at a member: %d", laws.Present(), laws.PresentAt(3))
	}
}
