package server

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// provingBytes is the memory for a proof of the backup: two stores, of which one is written, and an object at a
// time.
func (s *Server) provingBytes() int64 { return min(s.budgets.Limit/32, 128<<20) }

// Parts of provingBytes.
const (
	provingTables = 16 // one of four memtables
	provingCaches = 8  // of the blocks of one store
	provingObject = 2  // a manifest or a segment, as it is at the place and as it is read
	leastTable    = 256 << 10
	// leastObject is enough for the segments that members make, with the largest entry of --max-request-bytes as it is if
	// nobody sets it: where --memory is less than half a GiB it is more than the part above.
	leastObject = 8 << 20
	// provingRoom is the part of the room on the disk, beside the reserve, that a proof may need.
	provingRoom = 2
)

// startProver proves the backup whenever this member is appointed for that.
func (s *Server) startProver(context.Context, Options) error {
	own := &s.data.Identity
	total := s.provingBytes()
	proves := prover.New(prover.Options{Cluster: own.Cluster, Member: own.Member, Row: s.backupRow, Propose: s.member.Propose,
		Open: s.openPlace, FS: s.disk.fs, Dir: filepath.Join(s.cfg.Storage.DataDir, memberDir, snapshot.WorkDir, "proved"),
		OpenEngine: func(dir string, fatal func(error)) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: s.disk.fs, Dir: dir, Logger: s.logger, Paced: true, OnFatal: fatal,
				MemTableBytes: max(total/provingTables, leastTable), CacheBytes: total / provingCaches})
		},
		Apply: apply.Options{MostLeases: s.budgets.Starts(), Store: mvcc.Options{Life: s.ctx, CacheBytes: -1,
			Census: census.Options{LogBytes: leastTable, IntervalBytes: leastTable}}},
		Room: s.roomToProve, ObjectBytes: max(total/provingObject, leastObject), Chain: s.chainAt, Again: provingAgain,
		Clock: env.WallClock{}, Logger: s.logger,
	})
	s.wg.Go(func() { proves.Run(s.ctx) })
	return nil
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
