package server

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"time"

	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/storage/engine"
	objectplace "github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// provingRoom is the part of the room on the disk, beside the reserve, that a proof may need.
const provingRoom = 2

// provingParts are the parts of the memory for a proof of the backup, in bytes.
type provingParts struct {
	table  int64 // one of memory.MemTables of the store that is written
	cache  int64 // of the blocks of one of two stores
	census int64 // one of two counts of one of two stores
	place  int64 // operations on the place
	names  int64 // of the objects at the place, and what is made of them
	object int64 // a manifest or a segment, as it is at the place and as it is read
}

const (
	provingStores = 2
	provingPart   = 8 // tables, caches and operations have one of so many parts each, an object and names the rest
	leastTable    = 256 << 10
	provingCensus = 64 << 10
	// leastObject is about what a segment takes that has many small entries of one second.
	leastObject = 1 << 20
	// enoughObject is what names leave an object: about what is sealed at once, as it is read.
	enoughObject = 4 << 20
	leastNames   = 3 << 20 // 6144 names
)

// divideProof divides the share of a proof. Where that is little no memory is left for an object, and there is no proof.
func divideProof(share int64) provingParts {
	part := share / provingPart
	p := provingParts{table: max(part/memory.MemTables, leastTable), cache: part / provingStores, census: provingCensus,
		place: max(part, objectplace.LeastMemory)}
	rest := share - p.place - memory.MemTables*p.table - provingStores*(p.cache+2*p.census)
	p.names = max(leastNames, min(rest-enoughObject, survey.EnoughNameBytes))
	p.object = rest - p.names
	return p
}

// tooLittleToProve says that a share of --memory is too little for a proof; nil: it is not.
func tooLittleToProve(share int64) error {
	if divideProof(share).object >= leastObject {
		return nil
	}
	const mib, most = 1 << 20, 1 << 20 // MiB
	needs := sort.Search(most, func(n int) bool {
		return divideProof(memory.Divide(int64(n)*mib).Proof).object >= leastObject
	})
	return fmt.Errorf("this member has %d KiB of its --memory for a proof, which is too little: give it --memory=%dMiB or "+
		"more, or prove the backup elsewhere by `quorate backup verify --from URL --report --endpoints MEMBERS`", share>>10,
		needs)
}

// startProver proves the backup whenever this member is appointed for that.
func (s *Server) startProver(context.Context, Options) error {
	own := &s.data.Identity
	parts := divideProof(s.budgets.Proof)
	proves := prover.New(prover.Options{Cluster: own.Cluster, Epoch: uint64(own.Epoch.Number), Member: own.Member,
		Row: s.backupRow, Propose: s.member.Propose, Open: s.placeOpener(parts.place, nil), FS: s.disk.fs,
		Dir: filepath.Join(s.cfg.Storage.DataDir, memberDir, snapshot.WorkDir, "proved"),
		OpenEngine: func(dir string, fatal func(error)) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: s.disk.fs, Dir: dir, Logger: s.logger, Paced: true, OnFatal: fatal,
				MemTableBytes: parts.table, CacheBytes: parts.cache})
		},
		Apply: apply.Options{MostLeases: s.budgets.Starts(), Store: mvcc.Options{Life: s.ctx, CacheBytes: -1,
			Census: census.Options{LogBytes: int(parts.census), IntervalBytes: int(parts.census)}}},
		Room: s.roomToProve, ObjectBytes: parts.object, NameBytes: parts.names,
		TooLittle: tooLittleToProve(s.budgets.Proof), Chain: s.chainAt, Again: provingAgain,
		Clock: env.WallClock{}, Logger: s.logger,
	})
	s.prover.Store(proves)
	s.wg.Go(func() { proves.Run(s.ctx) })
	return nil
}

// proofBytes is the memory that a proof which is under way may hold: all of its share.
func (s *Server) proofBytes() int64 {
	if proves := s.prover.Load(); proves != nil && proves.Working() {
		return s.budgets.Proof
	}
	return 0
}

// provingAgain is how long the second look at a place waits.
const provingAgain = 5 * time.Second

// chainAt returns what this member has applied, and the hash at an index.
func (s *Server) chainAt(index consensus.Index) (applied consensus.Index, mark apply.ChainMark, known bool) {
	machine, release := s.member.Machine()
	defer release()
	applied = machine.Applied().Index // first: the chain has it then
	mark, known = machine.ChainAt(index)
	return applied, mark, known
}

// roomToProve refuses a proof that would take more than half of the disk's room beside the reserve, or that goes on while the
// disk is nearly full.
func (s *Server) roomToProve(bytes int64) error {
	free := max(0, int64(min(s.reserve.AvailableBytes(), math.MaxInt64))-s.cfg.Storage.DiskReserveBytes)
	if s.reserve.Low() || bytes > free/provingRoom {
		return fmt.Errorf("a restore needs %d MiB on the disk of --data-dir of %s, and may take half of the %d MiB that are "+
			"free beside --disk-reserve-bytes: make room, or prove it elsewhere by `quorate backup verify --from URL --report "+
			"--endpoints MEMBERS`",
			bytes>>20, s.cfg.Name, free>>20)
	}
	return nil
}
