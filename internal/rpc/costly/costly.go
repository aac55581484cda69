package costly

import (
	"context"
	"errors"
	"runtime"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// freeCost is what costs little.
	freeCost = 64 << 10
	// mostLooks is what comparisons may look at, and what puts may keep. The state machine rejects twice as much: others write
	// between the look and the log.
	mostLooks = apply.MaxLooks / 2
	// mostTogether is the cost of those that are in the log, and not applied: what the writes of others may wait for.
	mostTogether = 2 << 20
	maxIn        = 256 // commands that are proposed, or wait
	maxHostIn    = 64  // of one address
	patience     = 30 * time.Second
)

var errLooksTooFar = status.Errorf(codes.InvalidArgument, "etcdserver: request is too large: what it compares, and the values "+
	"that it keeps by ignore_value, are more than %d bytes, where each key counts %d bytes beside its value: compare shorter "+
	"ranges, or revisions instead of values, or keep fewer values in one transaction", mostLooks, kv.WalkKeyBytes)

var errTooMany = status.Error(codes.ResourceExhausted, "etcdserver: too many requests: too many writes that compare, delete "+
	"or keep very much wait at this member, or came from this address: try again later, or send fewer of them at once")

// Gate is what commands pass before they are proposed.
type Gate struct {
	machine func() (machine *apply.Machine, release func())
	turns   *admission.HostTurns
	pace    pace
}

// New returns a gate before the state machine of a member.
func New(machine func() (machine *apply.Machine, release func())) *Gate {
	return &Gate{machine: machine, turns: admission.NewHostTurns(mostTogether, maxIn, maxHostIn)}
}

// Counts returns how many commands that cost much are proposed or wait, and how many were refused.
func (g *Gate) Counts() (in int, refused uint64) { return g.turns.Counts() }

// Propose proposes a command when it may be. One that costs much is waited for though the call has ended: it is applied all the
// same, and only then may the next one be proposed.
func (g *Gate) Propose(
	ctx context.Context, command *kv.Command, propose func(context.Context, *kv.Command) (kv.Result, error),
) (kv.Result, error) {
	leave, err := g.Turn(ctx, command, func() {})
	if err != nil {
		return kv.Result{}, err
	}
	if leave == nil {
		return propose(ctx, command)
	}
	type outcome struct {
		result kv.Result
		err    error
	}
	done := make(chan outcome, 1)
	until, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	go func() {
		defer cancel()
		result, err := propose(until, command)
		leave()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.result.Memory != nil {
				o.result.Memory.Release() // no caller waits for the answer
			}
		}()
		return kv.Result{}, ctx.Err()
	}
}

// Turn waits until a command may be proposed, and refuses one that looks at, or keeps, more than half of what the state machine
// rejects: others write between this look and the log. leave is to be called once it was applied, or failed; it is nil if the
// command costs little. waits is called before it waits. Errors: errLooksTooFar (InvalidArgument), errTooMany
// (ResourceExhausted), and those of ctx and of the store.
func (g *Gate) Turn(ctx context.Context, command *kv.Command, waits func()) (leave func(), err error) {
	c, err := g.cost(ctx, command, mostLooks)
	switch {
	case err != nil:
		return nil, err
	case c.weight <= freeCost && !g.pace.over(c.keeps):
		g.pace.take(c.keeps)
		return nil, nil
	}
	waits()
	done, err := g.turns.Enter(ctx, admission.CallerOf(ctx).Host, c.weight)
	switch {
	case errors.Is(err, admission.ErrQueueFull):
		return nil, errTooMany
	case err != nil:
		return nil, err
	}
	pause := g.pace.take(c.keeps)
	return func() {
		if pause <= 0 {
			done()
			return
		}
		time.AfterFunc(pause, done)
	}, nil
}

// Little reports whether a command costs little.
func (g *Gate) Little(ctx context.Context, command *kv.Command) (bool, error) {
	c, err := g.cost(ctx, command, freeCost)
	if errors.Is(err, errLooksTooFar) {
		return false, nil
	}
	return c.weight <= freeCost && !g.pace.over(c.keeps), err
}

// costs is what a command costs.
type costs struct {
	weight int64 // of its turn
	keeps  int64 // bytes of values that it keeps, and are written again
}

// cost returns what a command costs, as far as it is no more than most: errLooksTooFar if what it compares and keeps is more.
func (g *Gate) cost(ctx context.Context, command *kv.Command, most int64) (costs, error) {
	if !MayBe(command) {
		return costs{}, nil
	}
	machine, release := g.machine()
	defer release()
	if op := command.LeaseRevoke; op != nil {
		keys, bytes := machine.Leases().KeysSize(op.ID)
		return costs{weight: min(int64(keys)*kv.WalkKeyBytes+bytes, partCost)}, nil
	}
	c := &cost{walk: walk{ctx, most}, machine: machine, looks: most, deletes: most}
	err := c.of(command)
	switch {
	case errors.Is(err, errOver), err == nil && c.looks < 0:
		return costs{}, errLooksTooFar
	case err != nil:
		return costs{}, err
	}
	return costs{weight: 2*most - c.looks - max(-1, c.deletes), keeps: c.keeps}, nil // -1: more than most
}

// partCost is about what it costs to delete a part of a lease.
const partCost = apply.EndBytes / apply.EndKeyBytes * kv.WalkKeyBytes

// walk is the account of a command that looks at much. It lets other goroutines run.
type walk struct {
	ctx  context.Context
	left int64
}

// errOver ends a walk when nothing is left.
var errOver = errors.New("costly: over the bound")

// Take implements kv.Account.
func (*walk) Take(int) error { return nil }

// Walk implements kv.Account.
func (w *walk) Walk(bytes int) error {
	runtime.Gosched()
	if w.left -= int64(bytes); w.left < 0 {
		return errOver
	}
	return w.ctx.Err()
}

// Release implements kv.Account.
func (*walk) Release() {}

// cost counts what a command costs, until nothing is left. A deleted key that is not gone from the store counts where a
// comparison passes over it: so it does when the command is applied.
type cost struct {
	walk
	machine *apply.Machine
	looks   int64 // left for what it compares and keeps
	deletes int64 // left for what it deletes or replaces, from which on more makes no difference
	keeps   int64
	looked  int // how many values of puts
}

// looksAtOnce is how many values a cost looks up without letting other goroutines run, or asking whether the call has ended.
const looksAtOnce = 64

func (c *cost) of(command *kv.Command) error {
	switch {
	case command.Put != nil:
		return c.put(command.Put, false)
	case command.Delete != nil:
		return c.delete(command.Delete)
	case command.Txn != nil:
		return c.txn(command.Txn)
	}
	return nil
}

// txn takes all comparisons, and both branches: what is true when the command is applied is not known.
func (c *cost) txn(op *kv.TxnOp) error {
	for i := range op.Compares {
		compare := op.Compares[i]
		if _, err := c.machine.Store().CheckAt(&compare, 0, &c.walk, &c.looks); err != nil || c.looks < 0 {
			return err
		}
	}
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			var err error
			switch {
			case list[i].Put != nil:
				err = c.put(list[i].Put, true)
			case list[i].Delete != nil:
				err = c.delete(list[i].Delete)
			case list[i].Txn != nil:
				err = c.txn(list[i].Txn)
			}
			if err != nil || c.looks < 0 {
				return err
			}
		}
	}
	return nil
}

// put takes the value that a put keeps. The value that it replaces is read for the chain: one of many, as in a transaction,
// may replace much more than it brings.
func (c *cost) put(op *kv.PutOp, oneOfMany bool) error {
	if op.IgnoreValue || op.IgnoreLease {
		c.looks -= kv.WalkKeyBytes
	}
	if !op.IgnoreValue && (!oneOfMany || c.deletes < 0) {
		return nil
	}
	if c.looked++; c.looked%looksAtOnce == 0 {
		runtime.Gosched()
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	size, err := c.machine.Store().ValueLen(op.Key)
	switch {
	case op.IgnoreValue:
		c.looks -= int64(size)
		c.keeps += int64(size)
	case size > kv.WalkKeyBytes:
		c.deletes -= int64(size)
	}
	return err
}

// delete takes the values, too, which are read for the chain, and what was deleted before, and is passed over.
func (c *cost) delete(op *kv.DeleteOp) error {
	if len(op.End) == 0 || c.deletes < 0 {
		return nil
	}
	all, found := walk{c.ctx, c.deletes}, int64(0)
	err := c.machine.Store().VisitKeys(op.Key, op.End, &all, func(_ []byte, size int) bool {
		found += kv.WalkKeyBytes + int64(size)
		return found <= c.deletes
	})
	if errors.Is(err, errOver) { // more makes no difference
		err = nil
	}
	c.deletes = min(c.deletes-found, all.left)
	return err
}
