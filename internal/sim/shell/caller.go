package shell

import (
	"context"

	"github.com/quorate/quorate/internal/kv"
)

// Caller is in whose name a client uses a stream. All but InTurn may wait, and is called inside of InTurn.
type Caller interface {
	InTurn(f func()) // does something after what came before on the stream
	Permit() error
	Unsettled() bool
	Sign(command *kv.Command) error
}

// Anybody is the Caller of a world without users.
type Anybody struct{}

// InTurn implements Caller.
func (Anybody) InTurn(f func()) { f() }

// Permit implements Caller.
func (Anybody) Permit() error { return nil }

// Unsettled implements Caller.
func (Anybody) Unsettled() bool { return false }

// Sign implements Caller.
func (Anybody) Sign(*kv.Command) error { return nil }

type callerKey struct{}

// caller is who uses the stream of a context.
func caller(ctx context.Context) Caller { return ctx.Value(callerKey{}).(Caller) }
