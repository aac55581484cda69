package writerapi

import (
	"cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// proposalBytes is about what a proposal takes beside its request, until its answer is sent.
const proposalBytes = 512

// held is what a proposal has of its stream's tab until it is answered.
func (one *streamProposal) held() int64 { return proposalBytes + int64(one.bytes) }

// hold counts what is kept of an answered proposal until its answer is sent: the result, as often as it is there once it is
// encoded, and the request only if the result has to be read by it. Where there is no room, the result goes: the client may
// ask for it again. The lock is held.
func (p *proposeStream) hold(one *streamProposal, f *finished) {
	const copies = 2
	f.held = one.held()
	if f.result.Left == nil {
		f.command = nil
	}
	if f.command == nil {
		p.tab.Give(int64(one.bytes))
		f.held -= int64(one.bytes)
	}
	more := copies * int64(resultBytes(&f.result))
	if p.tab.Take(more) {
		f.held += more
		return
	}
	f.drop()
	if f.command != nil {
		p.tab.Give(int64(one.bytes))
		f.held -= int64(one.bytes)
	}
	f.command, f.result, f.err = nil, kv.Result{}, cmp.Or(f.err, errNotHeld)
}

// wait counts what waits for the client to read. If that is too much, all of it is dropped and the stream ends: the results
// stay with the sessions, and the client may ask for them again. The lock is held.
func (p *proposeStream) wait(bytes int) {
	if p.unread += bytes; p.unread <= maxUnreadBytes {
		return
	}
	p.finished, p.heard = nil, heard{}
	if p.received == nil {
		p.received = errUnread
		p.writer.unread.Add(1)
		p.room.Broadcast()
	}
}

// verdictBytes is about what a message of the core to a client takes.
func verdictBytes(m *consensus.Message) int {
	const each = 128
	size := 0
	for i := range m.Verdicts {
		size += each + len(m.Verdicts[i].Reply)
	}
	return size
}

// resultBytes is about what a result takes.
func resultBytes(r *kv.Result) int {
	const each = 256
	op := kv.OpResult{Put: r.Put, Delete: r.Delete, Txn: r.Txn}
	return each + opResultBytes(&op)
}

func opResultBytes(r *kv.OpResult) int {
	size := 0
	switch {
	case r.Put != nil && r.Put.Prev != nil:
		size += pairBytes(r.Put.Prev)
	case r.Delete != nil:
		for i := range r.Delete.Prevs {
			size += pairBytes(&r.Delete.Prevs[i])
		}
	case r.Range != nil:
		for i := range r.Range.KVs {
			size += pairBytes(&r.Range.KVs[i])
		}
	case r.Txn != nil:
		const each = 64
		for i := range r.Txn.Responses {
			size += each + opResultBytes(&r.Txn.Responses[i])
		}
	}
	return size
}

func pairBytes(kv *kv.KeyValue) int {
	const header = 96
	return header + len(kv.Key) + len(kv.Value)
}
