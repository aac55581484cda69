package streams

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// proposalBytes is about what a proposal takes beside its request, until its answer is sent.
const proposalBytes = 512

const (
	// partBytes is about what a proposal or a record of a message takes once it is decoded, beside its request.
	partBytes = 112
	// fewParts may be in a message that is not counted.
	fewParts = 64
	// keptProposals is for how many proposals a stream keeps room that waits for nothing.
	keptProposals = 64
)

// verdictBytes is about what a message of the core to a client takes.
func verdictBytes(m *consensus.Message) int {
	const message, each = 512, 160
	size := message
	for i := range m.Verdicts {
		size += each + len(m.Verdicts[i].Reply)
	}
	return size
}

// commandBytes is about what a command takes beside its request and proposalBytes.
func commandBytes(command *kv.Command) int {
	if command == nil || command.Txn == nil {
		return 0
	}
	return command.Txn.Bytes()
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
