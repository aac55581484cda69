package shell

import "github.com/quorate/quorate/internal/kv"

// Completion is a proposals.Completion.
type Completion func(kv.Result, error)

// Complete implements proposals.Completion.
func (c Completion) Complete(result kv.Result, err error) { c(result, err) }

// Answer is a proposals.Completion with an identity of its own, so that it can be abandoned.
type Answer struct{ Tell func(kv.Result, error) }

// Complete implements proposals.Completion.
func (a *Answer) Complete(result kv.Result, err error) { a.Tell(result, err) }
