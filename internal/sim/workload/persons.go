package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/permits"
	"github.com/quorate/quorate/internal/sim/users"
)

// person returns the user of a client: root for number 0, a limited user for the others; nil in a world without users.
func (l *Load) person(number int) *users.Person {
	switch {
	case l.mix.Users == nil:
		return nil
	case number == 0:
		return users.Root()
	}
	return users.Limited(number)
}

// judge reports the outcome of a request to the checkers, and reports whether the request was refused for lack of a permission:
// then it has not happened, and never will.
func (c *client) judge(since int, who *permits.Who, command *kv.Command, r *kv.Result, err error) (denied bool) {
	var early *users.Refusal
	l := c.load
	switch {
	case errors.As(err, &early):
		if c.through = c.through || !early.Blind; !early.Blind {
			l.suite.Permits.Told(since, who, command, early.Err)
		}
	case err != nil:
		return false
	case permits.ForWantOfPermission(r.Err):
		l.suite.Permits.Told(since, who, command, r.Err)
	default:
		c.through = true
		l.suite.Permits.Told(since, who, command, nil)
		return false
	}
	c.through = c.through || early == nil
	l.Denied++
	l.suite.Acks.Refused(command)
	return true
}

// Expect makes Stuck begin anew.
func (l *Load) Expect() {
	for _, c := range l.clients {
		c.through = false
	}
}

// Stuck returns a client that acts as a user and was neither answered nor rightly refused since Expect. Native clients are left
// out: they may still wait for requests from long before.
func (l *Load) Stuck() (who string, stuck bool) {
	for _, c := range l.clients {
		if c.by != nil && !c.through {
			return fmt.Sprintf("client %d, %s", c.id, c.by.User), true
		}
	}
	return "", false
}

// logIn logs in at a member with the password that the client takes for its user's.
func (c *client) logIn(target Target, then func()) {
	l := c.load
	password := l.mix.Users.Password(c.by.User)
	l.world.Operation(c.id, "login "+c.by.User)
	life, over, since := target.Life(), false, l.suite.Permits.Present()
	finish := func() {
		if !over {
			over = true
			c.by.Wait()
			then()
		}
	}
	target.LogIn(c.by, password, func(hash string, err error) {
		if known, ok := users.Answered(err); known && !over {
			c.by.LoginEnded(err)
			l.suite.Permits.LoggedIn(since, c.by.User, hash, ok)
		}
		finish()
	})
	c.watch(target, life, func() bool { return over }, finish)
}

// getBy reads a key as a user; one time in three together with another key, in a transaction that only reads.
func (c *client) getBy(key string, linearizable bool) {
	l, target, begin, who := c.load, c.target, c.load.world.Now(), c.by.Who()
	if l.rng.IntN(3) == 0 {
		c.readTxnBy(key, l.key(), linearizable)
		return
	}
	op := &kv.RangeOp{Key: []byte(key)}
	c.readBy(linearizable, func(done func(err error, show func())) {
		target.RangeBy(c.by, op, linearizable, func(result kv.RangeResult, revision kv.Revision, err error) {
			done(err, func() { c.saw(key, begin, &result, revision, linearizable) })
		})
	}, func(since int, refused error) { l.suite.Permits.ToldRead(since, &who, op, refused) })
}

// readTxnBy reads two keys at one revision.
func (c *client) readTxnBy(one, two string, linearizable bool) {
	l, target, begin, who := c.load, c.target, c.load.world.Now(), c.by.Who()
	op := &kv.TxnOp{Then: []kv.Op{{Range: &kv.RangeOp{Key: []byte(one)}}, {Range: &kv.RangeOp{Key: []byte(two)}}}}
	c.readBy(linearizable, func(done func(err error, show func())) {
		target.ReadTxnBy(c.by, op, linearizable, func(results []kv.RangeResult, revision kv.Revision, err error) {
			done(err, func() {
				c.saw(one, begin, &results[0], revision, linearizable)
				c.saw(two, begin, &results[1], revision, linearizable)
			})
		})
	}, func(since int, refused error) { l.suite.Permits.ToldReadTxn(since, &who, op, refused) })
}

// readBy starts a read and judges its outcome: told judges the permission or refusal, show the result.
func (c *client) readBy(linearizable bool, ask func(done func(err error, show func())), told func(since int, refused error)) {
	l, target := c.load, c.target
	since := l.suite.Permits.Present()
	if !linearizable {
		since = l.suite.Permits.PresentAt(target.ID())
	}
	c.attempt++
	attempt, life, over := c.attempt, target.Life(), false
	finish := func() {
		if !over && attempt == c.attempt {
			over = true
			c.again()
		}
	}
	ask(func(err error, show func()) {
		var early *users.Refusal
		switch {
		case over || attempt != c.attempt || target.Life() != life:
			return
		case errors.As(err, &early):
			l.Denied++
			if c.through = c.through || !early.Blind; !early.Blind {
				told(since, early.Err)
			}
		default:
			c.through = true
			told(since, nil)
			show()
		}
		l.world.After(time.Duration(l.rng.IntN(300))*time.Microsecond, finish)
	})
	c.watch(target, life, func() bool { return over }, func() {
		l.Unanswered++
		finish()
	})
}
