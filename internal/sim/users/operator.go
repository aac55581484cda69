package users

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Operator is root: it makes users and roles, enables authentication, and then changes all of it again and again.
type Operator struct {
	rng     *rand.Rand
	suite   *check.Suite
	propose func(command *kv.Command, done func(kv.Result, error)) // at any member, or not at all
	after   func(d time.Duration, f func())

	first     []auth.Change // changes that come before all others, in this order
	turn      int           // answers to earlier turns are ignored
	passwords map[string]string
	open      map[string]int // unanswered proposals, by change
}

// patience is how long the operator waits for an answer, at first.
const patience = 2 * time.Second

// NewOperator makes an operator. Begin starts it.
func NewOperator(
	rng *rand.Rand, suite *check.Suite, propose func(*kv.Command, func(kv.Result, error)), after func(time.Duration, func()),
) *Operator {
	return &Operator{
		rng: rng, suite: suite, propose: propose, after: after, passwords: map[string]string{},
		open: map[string]int{},
	}
}

// Begin makes users and roles, and enables authentication after a while.
func (o *Operator) Begin(enable time.Duration) {
	o.first = append(o.first, auth.Change{Kind: auth.UserAdd, User: auth.RootUser, Hash: hashOf("root")},
		auth.Change{Kind: auth.UserGrantRole, User: auth.RootUser, Role: auth.RootRole})
	for i := range roleNames {
		o.first = append(o.first, auth.Change{Kind: auth.RoleAdd, Role: roleName(i)})
	}
	for i := range userNames {
		o.first = append(o.first, o.password(auth.UserAdd, userName(i)))
		o.first = append(o.first, auth.Change{Kind: auth.UserGrantRole, User: userName(i), Role: roleName(i)},
			auth.Change{Kind: auth.UserGrantRole, User: userName(i), Role: roleName(i + 1)})
	}
	for i, r := range [][2]string{{"k", "l"}, {"k", "k02"}, {"k01", "m"}, {"r/", "r0"}, {"l/", "l0"}} {
		o.first = append(o.first, auth.Change{Kind: auth.GrantPermission, Role: roleName(i), Permission: auth.Permission{
			Access: auth.ReadWrite, Key: []byte(r[0]), End: []byte(r[1]),
		}})
	}
	o.after(0, o.next)
	o.after(enable, func() {
		o.first = append(o.first, o.enabling())
		o.next()
	})
}

// next proposes the first pending change until it is answered, whatever the answer.
func (o *Operator) next() {
	o.turn++
	turn := o.turn
	if len(o.first) == 0 {
		return
	}
	o.do(o.first[0], func() {
		if turn == o.turn {
			o.first = o.first[1:]
			o.next()
		}
	})
	o.after(patience, func() {
		if turn == o.turn {
			o.next()
		}
	})
}

// do proposes a change. answered is not called after an error.
func (o *Operator) do(c auth.Change, answered func()) {
	before, what := o.suite.Permits.Newest(), fmt.Sprint(c)
	o.open[what]++
	o.propose(&kv.Command{Auth: &c}, func(r kv.Result, err error) {
		if err != nil {
			return
		}
		// If a second proposal of the same change is open, it is unknown which one was applied.
		if o.open[what]--; r.Err == nil && o.open[what] == 0 {
			o.suite.Permits.Acknowledged(before, &c)
		}
		answered()
	})
}

// Strike makes one drawn change, and describes it; empty before authentication was enabled.
func (o *Operator) Strike() string {
	if len(o.first) > 0 {
		return ""
	}
	c := o.draw()
	o.do(c, func() {})
	return fmt.Sprintf("%d %s %s %q %q", c.Kind, c.User, c.Role, c.Permission.Key, c.Permission.End)
}

// ranges are the key ranges of permissions: some touch, some overlap, some are single keys.
var ranges = [][2]string{
	{"k", "l"}, {"k00", "k01"}, {"k01", "k02"}, {"k00", "k02"}, {"k02", "k05"}, {"k04", "\x00"}, {"k00.000", ""},
	{"k01.001", ""}, {"l/", "l0"}, {"l/1000.0", ""}, {"r/", "r0"}, {"r/3", "r/6"}, {"\x00", "\x00"},
}

func (o *Operator) draw() auth.Change {
	user, role := userName(o.rng.IntN(userNames)), roleName(o.rng.IntN(roleNames))
	keys := ranges[o.rng.IntN(len(ranges))]
	permission := auth.Permission{
		Access: dice.Pick(o.rng, auth.Read, auth.Write, auth.ReadWrite, auth.ReadWrite),
		Key:    []byte(keys[0]), End: []byte(keys[1]),
	}
	kind := dice.Pick(o.rng, auth.GrantPermission, auth.GrantPermission, auth.GrantPermission, auth.GrantPermission,
		auth.RevokePermission, auth.RevokePermission, auth.RevokePermission, auth.UserGrantRole, auth.UserGrantRole,
		auth.UserGrantRole, auth.UserRevokeRole, auth.UserRevokeRole, auth.UserPassword, auth.UserPassword, auth.UserDelete,
		auth.UserAdd, auth.UserAdd, auth.RoleAdd, auth.RoleAdd, auth.RoleDelete, auth.Disable, auth.Enable,
		auth.Enable, auth.Enable)
	switch kind {
	case auth.Enable:
		return o.enabling()
	case auth.UserAdd, auth.UserPassword:
		return o.password(kind, user)
	case auth.UserDelete:
		return auth.Change{Kind: kind, User: user}
	case auth.UserGrantRole, auth.UserRevokeRole:
		return auth.Change{Kind: kind, User: user, Role: role}
	case auth.GrantPermission:
		return auth.Change{Kind: kind, Role: role, Permission: permission}
	case auth.RevokePermission:
		permission.Access = auth.Read
		return auth.Change{Kind: kind, Role: role, Permission: permission}
	}
	return auth.Change{Kind: kind, Role: role}
}

func (o *Operator) enabling() auth.Change {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(o.rng.UintN(256))
	}
	return auth.Change{Kind: auth.Enable, Secret: secret}
}

// password draws a password for a user.
func (o *Operator) password(kind auth.Kind, user string) auth.Change {
	password := fmt.Sprintf("p%d", o.rng.IntN(passwordCount))
	o.passwords[user] = password
	return auth.Change{Kind: kind, User: user, Hash: hashOf(password)}
}

// Password is the password that a user takes for its own: the last requested one, or sometimes another.
func (o *Operator) Password(user string) string {
	if dice.Chance(o.rng, 0.1) {
		return "p0"
	}
	return o.passwords[user]
}
