package auth_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/auth"
)

func TestState_Check_who(t *testing.T) {
	off := apply(t, auth.New(), base...)
	on := apply(t, off, enable)
	later := apply(t, on, auth.Change{Kind: auth.UserPassword, User: "alice", Hash: []byte("h")})
	alice := auth.Credentials{User: "alice", Revision: on.Revision()}
	for _, row := range []struct {
		name  string
		state *auth.State
		by    auth.Credentials
		want  error // of the user, of a key that app reads, and of what only root may
		read  error
		root  error
		free  bool
	}{
		{"not enabled", off, auth.Credentials{}, nil, nil, nil, true},
		{"not enabled, an old user", off, auth.Credentials{User: "zoe", Revision: 1}, nil, nil, nil, true},
		{"nobody", on, auth.Credentials{}, auth.ErrUserEmpty, auth.ErrUserEmpty, auth.ErrUserEmpty, false},
		{"nobody at a revision", on, auth.Credentials{Revision: 99}, auth.ErrUserEmpty, auth.ErrUserEmpty, auth.ErrUserEmpty, false},
		{"a user at no revision", on, auth.Credentials{User: "root"}, auth.ErrUserEmpty, auth.ErrUserEmpty, auth.ErrUserEmpty, false},
		{"an unknown user", on, auth.Credentials{User: "zoe", Revision: 99}, auth.ErrPermissionDenied, auth.ErrPermissionDenied,
			auth.ErrPermissionDenied, false},
		{"a user with a role", on, alice, nil, nil, auth.ErrPermissionDenied, false},
		{"a user without one", on, auth.Credentials{User: "bob", Revision: 6}, nil, auth.ErrPermissionDenied, auth.ErrPermissionDenied,
			false},
		{"root", on, auth.Credentials{User: "root", Revision: 2}, nil, nil, nil, true},
		{"before the user was added", on, auth.Credentials{User: "alice", Revision: 4}, auth.ErrOldRevision, auth.ErrOldRevision,
			auth.ErrOldRevision, false},
		{"when the user was added", on, auth.Credentials{User: "alice", Revision: 5}, nil, nil, auth.ErrPermissionDenied, false},
		{"before the user got its password", later, alice, auth.ErrOldRevision, auth.ErrOldRevision, auth.ErrOldRevision, false},
		{"the member itself", on, auth.Credentials{Member: true}, nil, nil, nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := row.state.Check(row.by)
			for _, got := range []struct {
				what      string
				err, want error
			}{
				{"User", c.User(), row.want}, {"Root", c.Root(), row.root},
				{"Read", c.Read([]byte("a"), nil), row.read}, {"Write", c.Write([]byte("a"), []byte("c")), row.read},
			} {
				if !errors.Is(got.err, got.want) {
					t.Errorf("%s: got %v, want %v", got.what, got.err, got.want)
				}
			}
			if c.Free() != row.free {
				t.Errorf("Free: got %v, want %v", c.Free(), row.free)
			}
		})
	}
	if zero := (auth.Credentials{}); !zero.IsZero() || alice.IsZero() || (&auth.Credentials{Member: true}).IsZero() {
		t.Error("IsZero")
	}
}

// letters and the keys of at most three of them. Ends of ranges have two at most, and the end of a key alone is one zero longer,
// so that some key of these is in any gap between ranges.
var letters = []byte{0, 'a', 'b', 0xff}

func keys(length int) []string {
	if length == 0 {
		return []string{""}
	}
	shorter := keys(length - 1)
	all := shorter
	for _, key := range shorter {
		if len(key) == length-1 {
			for _, letter := range letters {
				all = append(all, key+string([]byte{letter}))
			}
		}
	}
	return all
}

// within is what an etcd pair means.
func within(key, start, end string) bool {
	switch end {
	case "":
		return key == start
	case "\x00":
		return key >= start
	}
	return start <= key && key < end
}

// FuzzState_Check compares with asking for each key whether a permission has it. Each three bytes grant a permission, the last
// three say what is asked.
func FuzzState_Check(f *testing.F) {
	names, probes := keys(2), keys(3)
	f.Add([]byte{0, 5, 9, 0, 9, 13, 0, 5, 13})  // two ranges that touch
	f.Add([]byte{2, 5, 0, 2, 6, 0, 1, 5, 7})    // keys alone
	f.Add([]byte{0, 5, 1, 0, 1, 5, 0, 1, 1})    // from a key on
	f.Add([]byte{1, 1, 1, 0, 0, 1})             // from no key on
	f.Add([]byte{2, 5, 9, 1, 9, 5, 4, 9, 5, 7}) // empty ranges
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 3 || len(raw) > 60 {
			return
		}
		name := func(b byte) string { return names[int(b)%len(names)] }
		s := apply(t, apply(t, auth.New(), base...), auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "ops"},
			auth.Change{Kind: auth.RoleAdd, Role: "dev"}, auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "dev"}, enable)
		granted := map[[3]string]auth.Access{} // by role, key and end
		for ; len(raw) >= 6; raw = raw[3:] {
			role := []string{"ops", "dev", "app"}[raw[0]/3%3] // bob has not the last
			c := grants(role, auth.Access(raw[0]%3), name(raw[1]), name(raw[2]))
			next, _, err := s.Next(&c)
			if err != nil {
				continue
			}
			s = next
			if role != "app" {
				granted[[3]string{role, name(raw[1]), name(raw[2])}] = c.Permission.Access
			}
		}
		start, end := name(raw[1]), name(raw[2])
		asked := end
		if end != "" && end != "\x00" && start >= end {
			asked = "" // an empty range needs its key
		}
		read, write := true, true
		for _, key := range probes {
			if !within(key, start, asked) {
				continue
			}
			r, w := false, false
			for p, access := range granted {
				if within(key, p[1], p[2]) {
					r, w = r || access != auth.Write, w || access != auth.Read
				}
			}
			read, write = read && r, write && w
		}
		c := s.Check(auth.Credentials{User: "bob", Revision: s.Revision()})
		for range 2 { // then by what the first check kept
			if got := c.Read([]byte(start), []byte(end)) == nil; got != read {
				t.Errorf("Read(%q, %q): got %v, want %v, of %v", start, end, got, read, granted)
			}
			if got := c.Write([]byte(start), []byte(end)) == nil; got != write {
				t.Errorf("Write(%q, %q): got %v, want %v, of %v", start, end, got, write, granted)
			}
			_, _ = c.Read([]byte{0}, []byte{0xff}), c.Write([]byte{0}, []byte{0xff})
		}
	})
}
