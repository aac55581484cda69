package rpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/costly"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// Bounds of costly calls: how many run at once, and how many wait for their turn.
const (
	maxBackups      = 8 // being made, sent, or waiting; each takes as much disk as the store, for as long as its client reads
	maxHostBackups  = 4 // of one address
	maxScans        = 2 // Hash, HashKV and Defragment, which read the whole store
	maxDeletedCalls = 2 // History.Deleted
	maxMoves        = 1 // of leadership: a second one would abort the first
	maxTurnsWaited  = 64
	maxHostTurns    = 32 // running or waiting, of one address
)

// Bounds of the callers that wait for locks and elections. Each has a stream of events besides its call.
const (
	maxWaiting     = 16_384
	maxHostWaiting = 12_288
)

// mostBackupBytes is the most memory that a backup uses.
const mostBackupBytes = 32 << 20

// backupCachePart is the part of a backup's memory that its view of the store has for blocks: package server gives it.
const backupCachePart = 4

// BackupCacheBytes is the size of the block cache of a view of the store, if all backups together may use all bytes.
func BackupCacheBytes(all int64) int64 { return min(all, mostBackupBytes) / backupCachePart }

var errTooManyBackups = status.Error(codes.ResourceExhausted,
	"quorate: too many backups are being made of this member at once, or for this address: wait for one to end")

// bounds are the bounds of costly calls.
type bounds struct {
	held             *admission.Ledger
	backups, waiting *admission.HostBound
	backupTurns      *admission.Queue // turns for their memory
	backupBytes      int64            // the memory of each
	scans, moves     *admission.HostTurns
	deleted          *admission.HostTurns // calls of History.Deleted and Changes
	costly           *costly.Gate
	abandoned        admission.Abandoned
	websockets       admission.Abandoned // websockets that ended because of what they sent
	// streams returns the numbers of open and of refused ones.
	streams func() (open int, refused uint64)
}

func newBounds(options *Options) bounds {
	backupBytes := min(options.BackupBytes, mostBackupBytes)
	return bounds{
		held:    options.Held,
		backups: admission.NewHostBound(maxBackups, maxHostBackups),
		// At least one backup can always be made.
		backupTurns: admission.NewQueue(int(max(1, min(options.BackupBytes/backupBytes, maxBackups))), maxBackups),
		backupBytes: backupBytes,
		waiting:     admission.NewHostBound(maxWaiting, maxHostWaiting),
		scans:       turnsOf(maxScans),
		moves:       turnsOf(maxMoves),
		deleted:     turnsOf(maxDeletedCalls),
		costly:      costly.New(options.Member.Machine),
	}
}

// turnsOf returns turns of which most run at once. Hosts take turns, and none takes all places.
func turnsOf(most int) *admission.HostTurns {
	return admission.NewHostTurns(int64(most), most+maxTurnsWaited, maxHostTurns)
}

// turnedAway counts the calls and streams that clients could not have.
func (b *bounds) turnedAway() (all uint64) {
	for _, counts := range []func() (open int, refused uint64){b.backups.Counts, b.streams, b.waiting.Counts, b.scans.Counts,
		b.moves.Counts, b.deleted.Counts, b.costly.Counts} {
		_, refused := counts()
		all += refused
	}
	return all + b.held.Stats().Refused
}

func (b *bounds) collect(e *metrics.Emitter) {
	for _, row := range []struct {
		call   string
		counts func() (open int, refused uint64)
	}{
		{"backup", b.backups.Counts}, {"stream", b.streams}, {"lock", b.waiting.Counts},
		{"scan", b.scans.Counts}, {"move_leader", b.moves.Counts}, {"costly_write", b.costly.Counts},
		{"deleted_keys", b.deleted.Counts},
	} {
		open, refused := row.counts()
		e.Gauge("quorate_costly_calls", "Calls that are bounded in number and run now, by what they are.", float64(open),
			"call", row.call)
		e.Counter("quorate_costly_calls_refused_total", "Calls that were refused because too many of their kind run or wait.",
			float64(refused), "call", row.call)
	}
	hosts, refused := b.abandoned.Counts()
	sockets, socketsRefused := b.websockets.Counts()
	e.Gauge("quorate_hosts_abandoning", "Client hosts that have lately dropped connections with requests that were not "+
		"answered, or brought too much by websockets.", float64(hosts+sockets))
	e.Counter("quorate_hosts_abandoning_refused_total", "Connections that were closed because their client host had dropped "+
		"others with too many requests, and refused websockets.", float64(refused+socketsRefused))
	held := b.held.Stats()
	e.Gauge("quorate_held_bytes", "What clients hold by being there: connections, streams, calls, requests, unread answers.",
		float64(held.Bytes))
	e.Gauge("quorate_held_host_bytes", "What the client host holds that holds most.", float64(held.MostHostBytes))
	e.Counter("quorate_held_refused_total",
		"Connections, streams, calls and answers that were refused for what their client host holds.", float64(held.Refused))
}
