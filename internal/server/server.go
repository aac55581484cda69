package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/server/collect"
	"github.com/quorate/quorate/internal/server/discovery/srv"
	"github.com/quorate/quorate/internal/server/observe"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/server/shipper"
	"github.com/quorate/quorate/internal/storage/files"
	objectplace "github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/reserve"
	"github.com/quorate/quorate/internal/transport"
)

// Options are what a program adds to the configuration.
type Options struct {
	Logger *slog.Logger
	// LogDropped, if set, counts the lines of the log that no output took.
	LogDropped func() uint64
	// Faults, if set, is asked before anything is sent to or taken from a peer; true drops it. Tests cut members off.
	Faults func(peer consensus.MemberID) bool
	// Memory is what the parts of this member may have; the zero value leaves them memory.DefaultMost.
	Memory memory.Shares
	// FS, if set, holds the data directory instead of the disk of this machine. Tests lose power with it.
	FS env.FS
	// Resolver, if set, is asked for the records of --discovery-srv instead of that of the system.
	Resolver srv.Resolver
	// Fatal, if set, is called when the store cannot go on nor be closed. It should end the process: the log has all
	// that was acknowledged.
	Fatal func(error)
}

// Server is one running member with everything around it.
type Server struct {
	cfg         config.Config
	logger      *slog.Logger // writes names of members beside their ids
	names       names
	fatal       func(error)
	disk        disk
	lock        *dirLock
	data        *datadir.Data
	timings     *timings
	dropped     func() uint64 // lines of the log; nil: not counted
	member      *member.Member
	budgets     budgets
	transport   *transport.Transport
	reserve     *reserve.Watch
	services    *rpc.Services
	audit       *trail.Trail // nil: no calls are recorded
	keys        *keyCheck    // nil: the data directory is not encrypted
	keysOnce    sync.Once
	keysCounted *keyMetrics // see keyMetrics
	clients     *clientPorts
	conns       connLimits
	feed        *feed.Feed
	places      objectplace.Allowed
	// endShipping tells the shipper that the member ends; nil: there is none.
	endShipping context.CancelFunc
	observer    atomic.Pointer[observe.Observer]  // nil until clients are served; the member asks for verdicts before
	shipper     atomic.Pointer[shipper.Shipper]   // the same; metrics look before
	prover      atomic.Pointer[prover.Prover]     // as shipper
	shipPlace   atomic.Pointer[objectplace.Store] // where the shipper ships; nil: nowhere now
	collector   atomic.Pointer[collect.Collector] // as shipper; other members ask before

	nameBefore string // by which this member was known when it was started; empty: not known

	peerCerts *certs.Keeper

	background context.CancelFunc
	ctx        context.Context
	wg         sync.WaitGroup
	stopOnce   sync.Once
	stopErr    error
	done       chan struct{}
	errMu      sync.Mutex
	err        error
}

// asking is what a process uses to call members before it is one.
func (s *Server) asking() transport.Options {
	return transport.Options{Logger: s.logger, TLS: transport.TLS{Dial: s.peerCerts.Dial}}
}

// Start builds and starts a member. It returns once the member is ready to serve clients, or with the one error that
// says what to do. ctx ends a start that waits for the rest of the cluster.
func Start(ctx context.Context, cfg config.Config, options Options) (*Server, error) {
	budgets, err := newBudgets(&cfg, options.Memory)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, budgets: budgets, fatal: options.Fatal, dropped: options.LogDropped,
		done: make(chan struct{}), timings: newTimings(), disk: plainDisk(files.Disk),
		conns: newConnLimits(openFiles(), budgets.Peers)}
	s.logger = slog.New(naming{options.Logger.Handler(), &s.names})
	if options.FS != nil {
		s.disk = plainDisk(options.FS)
	}
	s.ctx, s.background = context.WithCancel(context.Background())
	s.clients = newClientPorts(s.ctx, &s.cfg, s.conns, &s.budgets, s.logger)
	steps := []func(context.Context, Options) error{
		s.allowPlaces, s.openKeys, s.checkData, s.lockData, s.lockKeys, s.openCerts, s.listenClients, s.openData, s.openAudit,
		s.watchDisks, s.connect, s.watchNames, s.serve, s.startCompactor, s.startShipper, s.startProver, s.publish,
		s.defragmentAtStart,
	}
	for _, step := range steps {
		if err := step(ctx, options); err != nil {
			if failure := s.failure(); failure != nil {
				err = failure
			}
			s.background()
			return nil, errors.Join(err, s.close())
		}
	}
	s.wg.Go(s.watchMember)
	s.logger.Info("ready to serve client requests")
	return s, nil
}

// defragmentAtStart does what --bootstrap-defrag-threshold-megabytes asks for: it defragments if that can free so much. etcd
// does it before it serves; here reads and writes go on meanwhile, so no client has to wait.
func (s *Server) defragmentAtStart(context.Context, Options) error {
	threshold := int64(s.cfg.Storage.BootDefragMegabytes) << 20
	if threshold == 0 {
		return nil
	}
	machine, release := s.member.Machine()
	size := machine.Store().Size()
	release()
	about := []any{"current-db-size-bytes", size.DiskBytes, "current-db-size-in-use-bytes", size.LogicalBytes,
		"bootstrap-defrag-threshold-bytes", threshold}
	if size.DiskBytes-size.LogicalBytes < threshold {
		s.logger.Info("Skipping defragmentation", about...)
		return nil
	}
	s.logger.Info("defragmenting after the start", about...)
	s.wg.Go(func() {
		begun := time.Now()
		if err := s.member.Defragment(s.ctx); err != nil && s.ctx.Err() == nil {
			s.logger.Warn("could not defragment after the start", "err", err)
			return
		}
		s.logger.Info("defragmented after the start", "took", time.Since(begun))
	})
	return nil
}

func (s *Server) listenClients(context.Context, Options) error { return s.clients.listen() }

// failure tells why the member stopped by itself, if it did.
func (s *Server) failure() error {
	if s.member == nil {
		return nil
	}
	return s.member.Err()
}

// watchMember ends the server when the member ends by itself.
func (s *Server) watchMember() {
	leaving := s.member.Leaving()
	for {
		select {
		case <-leaving:
			leaving = nil
			s.wg.Go(s.drain)
			continue
		case <-s.member.Failed():
			s.logger.Error("the member stopped", "err", s.member.Err())
			go s.end(context.Background(), s.member.Err())
		case <-s.ctx.Done():
		}
		return
	}
}

// drain sends clients of a removed member elsewhere and lets the requests under way end, before the member stops.
func (s *Server) drain() {
	s.logger.Info("removed from the cluster: clients are sent to other members")
	s.services.Close()
	s.clients.drain()
	s.member.Depart()
}

// Done is closed when the server has stopped, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err tells why the server stopped by itself; nil after Stop.
func (s *Server) Err() error {
	s.errMu.Lock()
	defer s.errMu.Unlock()
	return s.err
}

// Stop hands leadership over, ends what is running and closes everything. It is safe to call twice.
func (s *Server) Stop(ctx context.Context) error {
	s.end(ctx, s.failure())
	<-s.done
	if err := s.Err(); err != nil {
		return err // it failed by itself; how it closed does not matter then
	}
	return s.stopErr
}

func (s *Server) end(ctx context.Context, cause error) {
	s.stopOnce.Do(func() {
		s.errMu.Lock()
		s.err = cause
		s.errMu.Unlock()
		if cause == nil {
			s.handOver(ctx)
		}
		s.background()
		s.stopErr = s.close()
		close(s.done)
	})
}

// handOver moves leadership to another voter, so that the cluster goes on without an election.
func (s *Server) handOver(ctx context.Context) {
	if s.member.Leader() != s.member.ID() {
		return
	}
	status := s.member.Status()
	to := status.Heir()
	if to == consensus.NoMember {
		return
	}
	begun := time.Now()
	if err := s.member.TransferLeadership(ctx, to); err != nil {
		s.logger.Warn("could not hand leadership over", "peer", to.String(), "err", err)
		return
	}
	s.logger.Info("handed leadership over", "peer", to.String(), "took", time.Since(begun).String())
}

// close undoes the steps of Start in reverse order; it skips what was not reached.
func (s *Server) close() error {
	if s.services != nil {
		s.services.Close()
	}
	err := s.clients.close()
	s.closeAudit()
	if s.endShipping != nil {
		s.endShipping()
	}
	s.wg.Wait()
	if s.transport != nil {
		s.showRefusal()
		err = errors.Join(err, s.transport.Close())
	}
	switch {
	case s.member != nil:
		err = errors.Join(err, s.member.Stop())
	case s.data != nil:
		err = errors.Join(err, s.data.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.release())
	}
	return err
}

// showRefusal lets every peer see a data directory that one of them has refused, so that the leader's member list shows it
// whichever member met it first. Consensus has stopped by now: this process acknowledges nothing more, and never speaks again.
func (s *Server) showRefusal() {
	var lost *datadir.LostError
	if !errors.As(s.failure(), &lost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.transport.AwaitGreeting(ctx)
}

// ClientAddresses are where clients are served, for a configuration that asked for any free port.
func (s *Server) ClientAddresses() []net.Addr { return s.clients.addresses() }

// Member gives the running member, for tests and tools.
func (s *Server) Member() *member.Member { return s.member }

// Stalled names what has been at one piece of work for longer than limit: the member's loop, its log or its state machine.
func (s *Server) Stalled(limit time.Duration) error { return s.member.Stalled(limit) }

func (s *Server) String() string {
	return fmt.Sprintf("%s (%v)", s.cfg.Name, s.member.ID())
}
