package apply

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Answering returns the account for the answer to a proposal, nil if no client waits for the answer at this member. It is
// called only for commands that ask for keys and values.
type Answering func(id consensus.ProposalID) kv.Account

// Bounds of the reads of Apply for answers. All later entries wait meanwhile, so the handler of the request reads larger
// answers afterwards.
const (
	maxInlineBytes      = 1 << 20  // of one answer
	maxInlineBatchBytes = 16 << 20 // of the answers of one batch
	maxInlineWalk       = 1 << 20  // of the reads for one answer, as kv.Account counts them
	maxInlineBatchWalk  = 16 << 20 // of the reads for the answers of one batch
	// maxFastAnswerBytes bounds the reads of Evaluate: a fast answer is sent in addition to the proposal's own entry.
	maxFastAnswerBytes = 64 << 10
)

// answer collects the keys and values that the present command asks for. They must not be in the result table: only the member
// that answers collects them.
type answer struct {
	answering Answering
	base      kv.Revision // of the store before the command
	account   kv.Account  // nil: this member does not answer
	left      int         // of maxInlineBytes
	built     int         // bytes of answers in this batch
	far       int         // what is left of maxInlineWalk
	walked    int         // bytes read in this batch
	asked     bool        // the command asked for keys and values that exist, the same on every member
	short     bool        // some of them were not read
}

func (a *answer) clear() { a.account, a.asked, a.short, a.base = nil, false, false, 0 }

func (a *answer) begin(id consensus.ProposalID, cmd *kv.Command, base kv.Revision) {
	a.clear()
	a.base = base
	a.left = min(maxInlineBytes, maxInlineBatchBytes-a.built)
	a.far = min(maxInlineWalk, maxInlineBatchWalk-a.walked)
	if a.answering != nil && a.left > 0 && a.far > 0 && kv.AsksForPairs(cmd) {
		a.account = a.answering(id)
	}
}

// given reports whether the values that the command asks for are to be read.
func (a *answer) given() bool { return a.account != nil && !a.short }

// Take implements kv.Account, with the bounds of Apply.
func (a *answer) Take(bytes int) error {
	if a.left -= bytes; a.left < 0 {
		return kv.ErrAnswerTooLarge
	}
	return a.account.Take(bytes)
}

// Walk implements kv.Account, with the bounds of Apply: keys that a filter passes over count, too.
func (a *answer) Walk(bytes int) error {
	a.walked += bytes
	if a.far -= bytes; a.far < 0 {
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Release implements kv.Account.
func (a *answer) Release() {}

// takes notes that the command asks for previous pairs, and reports whether they have their values and fit the account.
func (a *answer) takes(pairs []kv.KeyValue, whole bool) bool {
	a.asked = true
	for i := 0; i < len(pairs) && !a.short; i++ {
		a.short = !whole || !a.given() || a.Take(mvcc.PairBytes(&pairs[i])) != nil
	}
	return !a.short
}

// read reads a range of a transaction.
func (a *answer) read(w *mvcc.Writer, op *kv.RangeOp) *kv.RangeResult {
	a.asked = true
	if !a.given() {
		a.short = true
		return nil
	}
	found, err := w.Range(op, a)
	if err != nil { // of the account, or of the engine; Commit returns the latter, too
		a.short = true
		return nil
	}
	return &found
}

// end passes the account to the result, or removes keys and values from a result that is not complete.
func (a *answer) end(res *kv.Result) {
	switch {
	case a.short:
		*res = a.kept(res)
	case a.account != nil && a.asked:
		a.built += maxInlineBytes - a.left
		res.Memory = a.account
		return
	}
	if a.account != nil {
		a.account.Release()
	}
}

// kept is the part of a result that the table keeps: the same on every member.
func (a *answer) kept(res *kv.Result) kv.Result {
	kept := kv.Result{Revision: res.Revision, Left: &kv.Left{Base: a.base}}
	switch {
	case res.Put != nil:
		kept.Put = &kv.PutResult{}
	case res.Delete != nil:
		kept.Delete = &kv.DeleteResult{Deleted: res.Delete.Deleted}
	default:
		kept.Txn = &kv.TxnResult{}
	}
	return kept
}

// fixedAccount is an account with a fixed number of bytes, and of maxInlineWalk.
type fixedAccount struct{ left, walked int }

// Take implements kv.Account.
func (r *fixedAccount) Take(bytes int) error {
	if r.left -= bytes; r.left < 0 {
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Walk implements kv.Account.
func (r *fixedAccount) Walk(bytes int) error {
	if r.walked += bytes; r.walked > maxInlineWalk {
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Release implements kv.Account.
func (r *fixedAccount) Release() {}

// release releases the accounts of results that are not delivered.
func release(results []kv.Result) {
	for i := range results {
		if results[i].Memory != nil {
			results[i].Memory.Release()
		}
	}
}
