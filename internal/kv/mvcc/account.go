package mvcc

import "github.com/quorate/quorate/internal/kv"

// asked is an account that remembers whether it has refused bytes.
type asked struct {
	kv.Account
	refused bool
}

// Take implements kv.Account.
func (a *asked) Take(bytes int) error { return a.remember(a.Account.Take(bytes)) }

// Walk implements kv.Account.
func (a *asked) Walk(bytes int) error { return a.remember(a.Account.Walk(bytes)) }

func (a *asked) remember(err error) error {
	a.refused = a.refused || err != nil
	return err
}

// walkStep is how much a walk reads between two calls of Walk: a fraction of a millisecond.
const walkStep = 64 * kv.WalkKeyBytes

// walk reports the progress of a walk to an account.
type walk struct {
	account kv.Account // nil: no account counts the walk
	since   int        // since the last call of Walk
}

func (w *walk) over(bytes int) error {
	if w.account == nil {
		return nil
	}
	if w.since += bytes; w.since < walkStep {
		return nil
	}
	since := w.since
	w.since = 0
	return w.account.Walk(since)
}
