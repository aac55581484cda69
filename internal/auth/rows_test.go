package auth_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/auth"
)

func marshal(m proto.Message) []byte {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

func userValue(u *authpb.User) []byte { return append([]byte{3}, marshal(u)...) }

func roleValue(name string, permissions ...*authpb.Permission) []byte {
	return marshal(&authpb.Role{Name: []byte(name), KeyPermission: permissions})
}

// Ensure that rows which no State writes are refused: some of them would permit too much.
func TestState_Load_corrupt(t *testing.T) {
	tooLong := string(make([]byte, 1<<10+1))
	named := func(roles ...string) []byte { return userValue(&authpb.User{Name: []byte("a"), Roles: roles}) }
	key := func(key, end string, kind int32) *authpb.Permission {
		return &authpb.Permission{PermType: authpb.Permission_Type(kind), Key: []byte(key), RangeEnd: []byte(end)}
	}
	for _, row := range []struct {
		name, key string
		value     []byte
	}{
		{"no key", "", []byte{1}},
		{"another table", "x", []byte{1}},
		{"an empty head", "h", nil},
		{"a head without a revision", "h", []byte{1}},
		{"a head with half a revision", "h", []byte{1, 0x80}},
		{"a head at revision 0", "h", []byte{1, 0}},
		{"a head that is half enabled", "h", []byte{2, 1}},
		{"another head", "hh", []byte{1, 1}},
		{"a user without a name", "u", userValue(&authpb.User{})},
		{"a user that is empty", "ua", nil},
		{"a user of another name", "ub", named()},
		{"a user whose name is no text", "u\xff", userValue(&authpb.User{Name: []byte("\xff")})},
		{"a user that is cut off", "ua", named("r")[:5]},
		{"a user with half a revision", "ua", []byte{0x80}},
		{"a user with roles out of order", "ua", named("s", "r")},
		{"a user with a role twice", "ua", named("r", "r")},
		{"a user with a role without a name", "ua", named("", "r")},
		{"a user with a role whose name is too long", "ua", named(tooLong)},
		{"a user whose name is too long", "u" + tooLong, userValue(&authpb.User{Name: []byte(tooLong)})},
		{"a role whose name is too long", "r" + tooLong, roleValue(tooLong)},
		{"a role without a name", "r", roleValue("")},
		{"a role of another name", "rb", roleValue("a")},
		{"a role that is cut off", "ra", roleValue("a", key("k", "", 0))[:5]},
		{"a permission without a key", "ra", roleValue("a", key("", "\x00", 0))},
		{"a permission for an empty range", "ra", roleValue("a", key("b", "a", 0))},
		{"an unknown access", "ra", roleValue("a", key("b", "", 3))},
		{"an access that a byte cannot hold", "ra", roleValue("a", key("b", "", 256))},
		{"a negative access", "ra", roleValue("a", key("b", "", -255))},
		{"permissions out of order", "ra", roleValue("a", key("b", "", 0), key("a", "", 0))},
		{"a permission twice", "ra", roleValue("a", key("b", "c", 0), key("b", "c", 1))},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := auth.New()
			if err := s.Load([]byte(row.key), row.value); !errors.Is(err, auth.ErrCorruptRow) {
				t.Errorf("got %v, want %v", err, auth.ErrCorruptRow)
			}
			if diff := difference(auth.New(), s); diff != "" {
				t.Errorf("something was loaded:\n%s", diff)
			}
		})
	}
	s := loaded(t, auth.Rows(apply(t, auth.New(), base...)))
	for _, key := range []string{"ualice", "rapp"} {
		if err := s.Load([]byte(key), nil); !errors.Is(err, auth.ErrCorruptRow) {
			t.Errorf("%s again: got %v, want %v", key, err, auth.ErrCorruptRow)
		}
	}
}

// Ensure that rows are refused which no State has together: authentication that is enabled without a root, which no user could
// disable, and a user that is newer than all changes, whom no login would serve.
func TestState_Loaded_corrupt(t *testing.T) {
	root := auth.Row{Key: []byte("uroot"), Value: userValue(&authpb.User{Name: []byte("root"), Roles: []string{"root"}})}
	for _, row := range []struct {
		name  string
		rows  []auth.Row
		whole bool
	}{
		{"enabled without the user root", []auth.Row{{Key: []byte("h"), Value: []byte{1, 9}}}, false},
		{"enabled, and root is not root", []auth.Row{{Key: []byte("h"), Value: []byte{1, 9}},
			{Key: []byte("uroot"), Value: userValue(&authpb.User{Name: []byte("root"), Roles: []string{"r"}})}}, false},
		{"a user from the future", []auth.Row{{Key: []byte("h"), Value: []byte{0, 2}}, root}, false},
		{"a user without a head", []auth.Row{root}, false},
		{"enabled, with root", []auth.Row{{Key: []byte("h"), Value: []byte{1, 3}}, root}, true},
		{"nothing", nil, true},
	} {
		s := auth.New()
		for i := range row.rows {
			if err := s.Load(row.rows[i].Key, row.rows[i].Value); err != nil {
				t.Fatal(row.name, err)
			}
		}
		if err := s.Loaded(); (err == nil) != row.whole || err != nil && !errors.Is(err, auth.ErrCorruptRow) {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}

// FuzzState_Load loads two hostile rows. If they load, the rows of their State load as an equal State.
func FuzzState_Load(f *testing.F) {
	rows := auth.Rows(apply(f, apply(f, auth.New(), base...), enable))
	for i, row := range rows {
		f.Add(row.Key, row.Value, rows[0].Key, rows[0].Value)
		f.Add(rows[len(rows)-1-i].Key, row.Value, row.Key, rows[0].Value)
	}
	f.Add([]byte("h"), binary.AppendUvarint([]byte{1}, 1<<63), []byte("ra"), roleValue("a"))
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 []byte) {
		s := auth.New()
		for _, row := range []auth.Row{{Key: key1, Value: value1}, {Key: key2, Value: value2}} {
			if err := s.Load(row.Key, row.Value); err != nil && !errors.Is(err, auth.ErrCorruptRow) {
				t.Fatalf("got %v", err)
			}
		}
		if err := s.Loaded(); err != nil {
			if !errors.Is(err, auth.ErrCorruptRow) {
				t.Fatalf("got %v", err)
			}
			return
		}
		again := loaded(t, auth.Rows(s))
		if diff := difference(s, again); diff != "" {
			t.Errorf("its rows hold another State:\n%s", diff)
		}
		for _, name := range s.Users() {
			c := s.Check(auth.Credentials{User: name, Revision: 1})
			_ = c.Read(key1, value1)
		}
		if next, _, err := s.Next(&auth.Change{Kind: auth.UserAdd, User: "new"}); err == nil && next.Bytes() <= s.Bytes() {
			t.Errorf("a user more makes %d bytes of %d", next.Bytes(), s.Bytes())
		}
	})
}

// Ensure that the sum depends on what there is, not on how it came to be, and is the same once it is loaded.
func TestState_Sum(t *testing.T) {
	if sum := auth.New().Sum(); sum != 0 || loaded(t, nil).Sum() != 0 {
		t.Errorf("nothing has the sum %x", sum)
	}
	s := apply(t, apply(t, auth.New(), base...), enable)
	if again := loaded(t, auth.Rows(s)); again.Sum() != s.Sum() || s.Sum() == 0 {
		t.Errorf("%x, and %x once it is loaded", s.Sum(), again.Sum())
	}
	for _, c := range []auth.Change{
		{Kind: auth.Disable}, {Kind: auth.UserPassword, User: "alice", Hash: []byte("h9")}, {Kind: auth.RoleDelete, Role: "app"},
		{Kind: auth.UserDelete, User: "alice"}, grants("ops", auth.Read, "x", ""), {Kind: auth.UserAdd, User: "carol"},
		{Kind: auth.UserRevokeRole, User: "alice", Role: "ops"}, revokes("app", "k", ""),
	} {
		next := apply(t, s, c)
		if next.Sum() == s.Sum() {
			t.Errorf("%+v leaves the sum", c)
		}
		if again := loaded(t, auth.Rows(next)); again.Sum() != next.Sum() {
			t.Errorf("%+v: %x, and %x once it is loaded", c, next.Sum(), again.Sum())
		}
	}
}
