package auth_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/auth"
)

// drawChange draws from few names and keys, so that changes meet.
func drawChange(rng *rand.Rand) auth.Change {
	users := []string{"root", "alice", "bob", "", "zoe"}
	roles := []string{"root", "app", "ops", "", "dev"}
	keys := []string{"a", "b", "\x00", "", "\xff"}
	// 0 and 15 are no kinds. Deletions are rare, or there would be nothing to change.
	kinds := []auth.Kind{0, 1, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6, 6, 7, 8, 8, 8, 9, 10, 10, 10, 10, 11, 11, 11, 11, 12, 12, 13, 14, 14, 14, 15}
	c := auth.Change{
		Kind: kinds[rng.IntN(len(kinds))], User: users[rng.IntN(len(users))], Role: roles[rng.IntN(len(roles))],
		NoPassword: rng.IntN(4) == 0, Permission: permission(auth.Access(rng.IntN(4)), keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))]),
	}
	if rng.IntN(3) > 0 {
		c.Hash = fmt.Appendf(nil, "hash %d", rng.IntN(100))
	}
	if rng.IntN(3) > 0 {
		c.Secret = fmt.Appendf(nil, "secret %d", rng.IntN(100))
	}
	if c.Kind.OfJoinToken() && rng.IntN(8) > 0 {
		c.Now = 100 + rng.Int64N(20)
		c.Token = &auth.JoinToken{ID: []string{"00000001", "00000002", "0000000A", ""}[rng.IntN(4)], Hash: [32]byte{byte(rng.IntN(4) / 3)},
			Expires: c.Now + rng.Int64N(20), Uses: rng.IntN(3), Owner: users[rng.IntN(len(users))]}
		c.Newcomer = [32]byte{byte(rng.IntN(4))}
	}
	return c
}

// Ensure what doc.go promises, after each of many random changes.
func TestState_Next_walk(t *testing.T) {
	accepted := map[auth.Kind]int{}
	seeds := uint64(8)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := auth.New()
		table := map[string]auth.Row{}
		for step := range 600 {
			c := drawChange(rng)
			where := fmt.Sprintf("seed %d, step %d, %+v", seed, step, c)
			before := loaded(t, auth.Rows(s))
			next, rows, err := s.Next(&c)
			if diff := difference(before, s); diff != "" {
				t.Fatalf("%s: the State changed:\n%s", where, diff)
			}
			if again, same, _ := s.Next(&c); difference(again, next) != "" || cmp.Diff(same, rows) != "" {
				t.Fatalf("%s: the same change gave something else", where)
			}
			checkRevision(t, where, &c, s, next, rows, err)
			if len(rows) > 0 {
				accepted[c.Kind]++
			}
			write(table, rows)
			if len(table) > 0 {
				if diff := difference(loaded(t, rowsOf(table)), next); diff != "" {
					t.Fatalf("%s: the rows hold something else:\n%s", where, diff)
				}
			}
			checkLaws(t, where, next)
			s = next
		}
	}
	for kind := auth.Enable; kind.Valid(); kind++ {
		if accepted[kind] < int(seeds) {
			t.Errorf("kind %d was accepted only %d times", kind, accepted[kind])
		}
	}
}

func write(table map[string]auth.Row, rows []auth.Row) {
	for _, row := range rows {
		if len(row.Value) == 0 {
			delete(table, string(row.Key))
		} else {
			table[string(row.Key)] = row
		}
	}
}

func rowsOf(table map[string]auth.Row) (rows []auth.Row) {
	for _, row := range table {
		rows = append(rows, row)
	}
	return rows
}

// checkRevision checks the rule: one more for each change that changes something, but none for Enable and join tokens.
func checkRevision(t *testing.T, where string, c *auth.Change, s, next *auth.State, rows []auth.Row, err error) {
	t.Helper()
	want := s.Revision()
	if len(rows) > 0 && c.Kind != auth.Enable && !c.Kind.OfJoinToken() {
		want++
	}
	switch {
	case next.Revision() != want:
		t.Fatalf("%s: revision %d after %d, want %d", where, next.Revision(), s.Revision(), want)
	case (len(rows) == 0) != (next == s):
		t.Fatalf("%s: %d rows, and another State: %v", where, len(rows), next != s)
	case err != nil && next != s:
		t.Fatalf("%s: rejected, and another State", where)
	}
}

// setSize is what a permission takes in the sets of its role.
func setSize(p *auth.Permission) int {
	size := auth.PerItem
	if p.Access == auth.ReadWrite {
		size *= 2
	}
	if len(p.End) == 0 {
		size += 2*len(p.Key) + 1
	}
	return size
}

func checkLaws(t *testing.T, where string, s *auth.State) {
	t.Helper()
	if s.Enabled() && !s.HasRole(auth.RootUser, auth.RootRole) {
		t.Fatalf("%s: enabled, and root is not root", where)
	}
	size := 0
	for _, name := range s.Users() {
		u, _ := s.User(name)
		size += auth.PerItem + len(u.Name) + len(u.Hash)
		if u.Name != name || name == "" || u.Since == 0 || u.Since > s.Revision() || u.NoPassword && len(u.Hash) > 0 {
			t.Fatalf("%s: user %+v at %d", where, u, s.Revision())
		}
		if !slices.IsSorted(u.Roles) || len(slices.Compact(slices.Clone(u.Roles))) != len(u.Roles) {
			t.Fatalf("%s: user %+v has roles out of order", where, u)
		}
		for _, role := range u.Roles {
			size += auth.PerItem + len(role)
			if _, ok := s.Role(role); !ok && role != auth.RootRole {
				t.Fatalf("%s: user %+v has a role that does not exist", where, u)
			}
		}
	}
	for _, name := range s.Roles() {
		r, _ := s.Role(name)
		size += auth.PerItem + len(r.Name)
		seen := map[string]bool{}
		for i, p := range r.Permissions {
			size += auth.PerItem + len(p.Key) + len(p.End) + setSize(&p)
			id := fmt.Sprintf("%q %q", p.Key, p.End)
			if seen[id] || len(p.Key) == 0 || i > 0 && string(r.Permissions[i-1].Key) > string(p.Key) {
				t.Fatalf("%s: role %+v", where, r)
			}
			seen[id] = true
		}
	}
	for _, token := range s.JoinTokens(0) {
		size += auth.PerItem + len(token.ID) + 32 + len(token.Owner) + 32*len(token.UsedBy)
		if token.Uses < 1 || len(token.UsedBy) > token.Uses {
			t.Fatalf("%s: join token %+v", where, token)
		}
	}
	if size != s.Bytes() {
		t.Fatalf("%s: %d bytes are counted, there are %d", where, s.Bytes(), size)
	}
}
