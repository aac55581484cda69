package apply

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Answering gives the room for the answer to a proposal, nil if nobody here waits for one. It is asked only for commands
// that ask for keys and values.
type Answering func(id consensus.ProposalID) kv.Room

// What Apply reads for answers. All entries behind wait for it, so that what is larger is left to whoever answers.
const (
	maxInlineBytes      = 1 << 20  // of one answer
	maxInlineBatchBytes = 16 << 20 // of the answers of one batch
	// maxFastAnswerBytes bounds what Evaluate reads: it goes over the wire beside the proposal's own way.
	maxFastAnswerBytes = 64 << 10
)

// answer collects what the command under way asks for. What it finds must not show in the result table: only some members
// have room for it.
type answer struct {
	answering Answering
	base      kv.Revision // of the store before the command
	room      kv.Room     // nil: nobody here is answered
	left      int         // of maxInlineBytes
	built     int         // by this batch
	asked     bool        // the command asked for keys and values that are there, the same on every member
	short     bool        // and some of them were not read
}

func (a *answer) clear() { a.room, a.asked, a.short, a.base = nil, false, false, 0 }

func (a *answer) begin(id consensus.ProposalID, cmd *kv.Command, base kv.Revision) {
	a.clear()
	a.base = base
	a.left = min(maxInlineBytes, maxInlineBatchBytes-a.built)
	if a.answering != nil && a.left > 0 && kv.AsksForPairs(cmd) {
		a.room = a.answering(id)
	}
}

// given reports whether values that are asked for are to be read.
func (a *answer) given() bool { return a.room != nil && !a.short }

// Take implements kv.Room: what Apply reads by itself is bounded, too.
func (a *answer) Take(bytes int) error {
	if a.left -= bytes; a.left < 0 {
		return kv.ErrAnswerTooLarge
	}
	return a.room.Take(bytes)
}

// Release implements kv.Room.
func (a *answer) Release() {}

// takes notes that previous pairs are asked for, and reports whether they are there with their values and find room.
func (a *answer) takes(pairs []kv.KeyValue, whole bool) bool {
	a.asked = true
	for i := 0; i < len(pairs) && !a.short; i++ {
		a.short = !whole || !a.given() || a.Take(mvcc.PairBytes(&pairs[i])) != nil
	}
	return !a.short
}

// read is a range of a transaction.
func (a *answer) read(w *mvcc.Writer, op *kv.RangeOp) *kv.RangeResult {
	a.asked = true
	if !a.given() {
		a.short = true
		return nil
	}
	found, err := w.Range(op, a)
	if err != nil { // for want of room, or the engine's, which Commit returns
		a.short = true
		return nil
	}
	return &found
}

// end gives the room to the result, or strips the result of what is not complete.
func (a *answer) end(res *kv.Result) {
	switch {
	case a.short:
		*res = a.kept(res)
	case a.room != nil && a.asked:
		a.built += maxInlineBytes - a.left
		res.Room = a.room
		return
	}
	if a.room != nil {
		a.room.Release()
	}
}

// kept is what is kept of a result: the same on every member.
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

// fixedRoom is so many bytes that nobody gives back.
type fixedRoom struct{ left int }

// Take implements kv.Room.
func (r *fixedRoom) Take(bytes int) error {
	if r.left -= bytes; r.left < 0 {
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Release implements kv.Room.
func (r *fixedRoom) Release() {}

// release gives back the room of results that nobody gets.
func release(results []kv.Result) {
	for i := range results {
		if results[i].Room != nil {
			results[i].Room.Release()
		}
	}
}
