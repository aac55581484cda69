package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/sim/permits"
	"github.com/quorate/quorate/internal/sim/routines"
)

// Ports are the ports of a Gate to its process.
type Ports struct {
	Machine func() *apply.Machine
	Propose func(command *kv.Command, done func(kv.Result, error)) (abandon func())
	Read    func(done func())               // calls done once all writes that were acknowledged before are applied
	After   func(d time.Duration, f func()) // unless the process ends before
	Moment  func() time.Duration            // draws the length of a short operation
	Go      func(f func(wait routines.Wait))
	Clock   env.Clock
	Faults  Faults
}

// Faults drop rules, for negative controls.
type Faults struct {
	ReadEarly       bool // permissions for a read are checked before the read waits, and not afterwards
	ReadTxnFree     bool // permissions are not checked for a transaction that only reads
	FormerPasswords bool // a token stays valid when its user gets another password
}

// Gate is the access control of one life of a simulated member.
type Gate struct {
	ports   Ports
	control *access.Control
	login   *login.Login
	issued  map[string]auth.Credentials // for Faults.FormerPasswords
}

// catchUpPatience is how long a refused call waits to see whether its member only lags, as in a member.
const catchUpPatience = 2 * time.Second

// tokenTTL is longer than any difference between the clocks of members.
const tokenTTL = 1000 * time.Hour

// New makes the access control of a process.
func New(ports Ports) (*Gate, error) {
	g := &Gate{ports: ports, issued: map[string]auth.Credentials{}}
	var err error
	g.login, err = login.New(login.Options{TTL: tokenTTL, Clock: ports.Clock, Same: samePassword})
	g.control = access.New(access.Options{
		Machine: func() (*apply.Machine, func()) { return ports.Machine(), func() {} },
		Users:   func() *auth.State { return ports.Machine().Users() },
		CatchUp: g.catchUp, Tokens: g, Certificates: true,
	})
	return g, err
}

func samePassword(hash, password []byte) error {
	if string(hash) != string(hashOf(string(password))) {
		return errors.New("users: another password")
	}
	return nil
}

// Authenticate implements access.Tokens.
func (g *Gate) Authenticate(state *auth.State, token string) (auth.Credentials, error) {
	by, err := g.login.Authenticate(state, token)
	if former, known := g.issued[token]; err != nil && known && g.ports.Faults.FormerPasswords {
		return auth.Credentials{User: former.User, Revision: auth.AnyRevision}, nil
	}
	return by, err
}

// Again implements access.Tokens: each use of a token is judged.
func (*Gate) Again(*auth.State, string) func() bool { return nil }

// Quick implements access.Tokens.
func (g *Gate) Quick() bool { return g.login.Quick() }

// call is one call that may block. blind says that its refusal may be wrong: without a leader, its member could not find out
// whether it only lags.
type call struct {
	wait  routines.Wait
	blind bool
	over  bool // its process has ended: the caller gets no answer
}

type callKey struct{}

var errBlind = errors.New("users: the member could not catch up")

// catchUp waits in the routine of the call.
func (g *Gate) catchUp(ctx context.Context) error {
	c := ctx.Value(callKey{}).(*call)
	caught := false
	goesOn := c.wait(func(resume func()) {
		over := false
		end := func(in bool) {
			if !over {
				over, caught = true, in
				resume()
			}
		}
		g.ports.Read(func() { end(true) })
		g.ports.After(catchUpPatience, func() { end(false) })
	})
	c.over = c.over || !goesOn
	if !caught {
		c.blind = true
		return errBlind
	}
	return nil
}

// Refusal is the reason for which a call was refused before anything was proposed. Blind refusals may be wrong.
type Refusal struct {
	Err   error
	Blind bool
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("refused: %v", r.Err) }

// begin runs a call of a client.
func (g *Gate) begin(p *Person, do func(ctx context.Context, c *call)) {
	g.ports.Go(func(wait routines.Wait) {
		c := &call{wait: wait}
		do(p.context(context.WithValue(context.Background(), callKey{}, c)), c)
	})
}

// pause waits for a moment, and reports whether the process still runs.
func (g *Gate) pause(c *call) bool {
	return c.wait(func(resume func()) { g.ports.After(g.ports.Moment(), resume) })
}

// refused returns the refusal of a call, and notes whether the client should log in again.
func (p *Person) refused(c *call, err error) error {
	p.Note(err)
	return &Refusal{err, c.blind}
}

// Note notes a refusal after which another login may help.
func (p *Person) Note(err error) {
	for _, why := range []error{login.ErrInvalidToken, auth.ErrOldRevision, auth.ErrUserEmpty} {
		p.stale = p.stale || permits.Says(err, why, etcderr.Wire(why))
	}
}

// Propose proposes a command for a client, as package rpc does.
func (g *Gate) Propose(p *Person, command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	giveUp := func() {}
	g.begin(p, func(ctx context.Context, c *call) {
		early := true // a refusal now comes before the proposal
		r, err := g.control.Propose(ctx, command, func(_ context.Context, command *kv.Command) (r kv.Result, err error) {
			early = false
			if !c.wait(func(resume func()) {
				giveUp = g.ports.Propose(command, func(result kv.Result, failed error) {
					r, err = result, failed
					resume()
				})
			}) {
				c.over = true
			}
			early = errors.Is(r.Err, auth.ErrUserEmpty)
			return r, err
		})
		switch {
		case c.over:
		case err != nil && early:
			done(kv.Result{}, p.refused(c, err))
		default:
			p.Note(r.Err)
			done(r, err)
		}
	})
	return func() { giveUp() }
}

// Range reads as package rpc does: it checks the permission after a linearizable read has waited, and once more if users
// changed while the answer was made, which takes a moment here.
func (g *Gate) Range(p *Person, op *kv.RangeOp, linearizable bool, done func(kv.RangeResult, kv.Revision, error)) {
	var result kv.RangeResult
	var revision kv.Revision
	g.read(p, linearizable, func(ctx context.Context) (*auth.State, error) {
		return g.control.Read(ctx, op.Key, op.End)
	}, func(store *mvcc.Store) (err error) {
		result, revision, err = store.Range(op)
		return err
	}, func(err error) { done(result, revision, err) })
}

// ReadTxn is Range for a transaction of ranges only: all are read at one revision. It has no comparisons and no nested
// transactions.
func (g *Gate) ReadTxn(p *Person, op *kv.TxnOp, linearizable bool, done func([]kv.RangeResult, kv.Revision, error)) {
	var results []kv.RangeResult
	var revision kv.Revision
	g.read(p, linearizable, func(ctx context.Context) (*auth.State, error) {
		if g.ports.Faults.ReadTxnFree {
			return g.control.State(), nil
		}
		return g.control.ReadTxn(ctx, op)
	}, func(store *mvcc.Store) error {
		revision = store.Revision()
		for i := range op.Then {
			at := *op.Then[i].Range
			at.Revision = revision
			result, _, err := store.Range(&at)
			if err != nil {
				return err
			}
			results = append(results, result)
		}
		return nil
	}, func(err error) { done(results, revision, err) })
}

func (g *Gate) read(
	p *Person, linearizable bool, permit func(context.Context) (*auth.State, error), read func(*mvcc.Store) error,
	done func(error),
) {
	early := g.ports.Faults.ReadEarly
	g.begin(p, func(ctx context.Context, c *call) {
		var state *auth.State
		var err error
		if early {
			if _, err = permit(ctx); err != nil {
				done(p.refused(c, err))
				return
			}
		}
		if linearizable && !c.wait(g.ports.Read) {
			return
		}
		if !early {
			if state, err = permit(ctx); err != nil {
				done(p.refused(c, err))
				return
			}
		}
		if !g.pause(c) || read(g.ports.Machine().Store()) != nil || !g.pause(c) {
			return
		}
		if !early && !g.control.Unchanged(state) {
			if _, err = permit(ctx); err != nil {
				done(p.refused(c, err))
				return
			}
		}
		done(nil)
	})
}

// Renew checks whether a client may renew a lease.
func (g *Gate) Renew(p *Person, id kv.LeaseID, done func(error)) {
	g.begin(p, func(ctx context.Context, c *call) {
		_, err := g.control.Renew(ctx, []kv.LeaseID{id})
		p.Note(err)
		done(err)
	})
}

// LogIn logs a client in with a password. done gets the hash of the password, also if the login failed.
func (g *Gate) LogIn(p *Person, password string, done func(hash string, err error)) {
	g.begin(p, func(ctx context.Context, c *call) {
		if err := g.catchUp(ctx); err != nil {
			done("", err)
			return
		}
		state := g.control.State()
		token, err := g.login.Login(ctx, state, p.User, password)
		if err == nil {
			user, _ := state.User(p.User)
			p.token, p.since, p.secret = token, user.Since, string(state.Secret())
			g.issued[token] = auth.Credentials{User: p.User, Revision: user.Since}
		}
		done(string(hashOf(password)), err)
	})
}
