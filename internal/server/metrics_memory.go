package server

import (
	"runtime/metrics"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/memory"
	emit "github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// memoryUser is what tells how much the parts of a member have: the member.
type memoryUser interface {
	StorageStats() (wal.Stats, engine.Stats)
	ProposalBytes() (own, clients int)
	Machine() (machine *apply.Machine, release func())
	CoreCounts() raft.Counts
	Hub() *watch.Hub
}

// collectMemory shows what each part may have of --memory, and what it has: docs/limits.md.
func collectMemory(e *emit.Emitter, b *budgets, user memoryUser, peers *admission.Unidentified, packing, shipped, proof int64) {
	e.Gauge("quorate_memory_limit_bytes", "Memory of this process, by --memory.", float64(b.Limit))
	for _, row := range memoryParts(b, user, peers, packing, shipped, proof) {
		e.Gauge("quorate_memory_part_bytes",
			"Memory that a part of the member has; runtime is all that the Go runtime took from the system, for all parts.",
			float64(row.has), "part", row.part)
		e.Gauge("quorate_memory_part_limit_bytes", "Memory that this part may have.",
			float64(row.most), "part", row.part)
	}
}

// memoryPart is a part of a member, with what it may have and what it has.
type memoryPart struct {
	part      string
	most, has int64
}

func memoryParts(b *budgets, user memoryUser, peers *admission.Unidentified, packing, shipped, proof int64) []memoryPart {
	_, store := user.StorageStats()
	own, clients := user.ProposalBytes()
	machine, release := user.Machine()
	versions := machine.Store().CacheStats().Bytes
	release()
	return []memoryPart{
		{"runtime", b.Heap, runtimeBytes()},
		{"memtables", memory.MemTables * b.MemTable, int64(store.MemTableBytes)},
		{"blocks", b.Blocks, store.CacheBytes},
		{"versions", b.Versions, versions},
		{"log", b.Log.Snapshot, int64(user.CoreCounts().Log.Held)},
		{"answers", b.Answers, b.answers.UsedBytes()},
		{"clients", b.Clients.Total, b.held.Stats().Bytes},
		{"peers", b.Peers, peers.Held()},
		{"watches", b.Watch.Total, user.Hub().Stats().WaitingBytes},
		{"packing", b.Packing, packing},
		{"proposals", 2 * b.Proposals, int64(own + clients)},
		{"shipped", b.Shipped.Kept + b.Shipped.Waiting + b.Shipped.Place, shipped},
		{"proof", b.Proof, proof},
	}
}

// boundedParts are those whose clients wait or are refused once they are full. Caches, tables and the log use all that they
// may have; watches have bounds of their own.
var boundedParts = []string{"answers", "clients", "peers", "proposals"}

// observedParts are these parts for the doctor.
func observedParts(b *budgets, user memoryUser, peers *admission.Unidentified) (all []*quoratepb.ObservedPart) {
	for _, part := range memoryParts(b, user, peers, 0, 0, 0) {
		if slices.Contains(boundedParts, part.part) {
			all = append(all, &quoratepb.ObservedPart{Name: part.part, Bytes: part.has, LimitBytes: part.most})
		}
	}
	return all
}

// runtimeBytes is what the Go runtime took from the system and has not given back: what its limit bounds.
func runtimeBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
