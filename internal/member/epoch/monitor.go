package epoch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// SupersededError is the answer of a member whose cluster was recovered without it. Nothing happened.
type SupersededError struct{ Text string }

func (e *SupersededError) Error() string { return e.Text }

const (
	// alarmInterval is the time between two log messages about the same member of another epoch.
	alarmInterval = time.Minute
	// maxAsked bounds how many members are asked in one round.
	maxAsked = 64
)

// Options are the member's identity, and what a Monitor needs of the member.
type Options struct {
	Own             identity.Claim
	ElectionTimeout time.Duration
	Clock           env.Clock
	Logger          *slog.Logger
	// Unconnected returns the other members of the configuration, with their names, to which there is no connection.
	Unconnected func() []consensus.Member
	// Name returns the name of a member of the configuration, or "" while it is not known.
	Name func(consensus.MemberID) string
	// Dropped returns the members that the recovery of this directory dropped.
	Dropped func() ([]consensus.Member, error)
	// Greet asks the process that listens at a peer URL who it is.
	Greet func(ctx context.Context, url string) (identity.Greeting, error)
}

// Monitor is a Tracker for several goroutines, and the goroutine that asks others which epoch they are of.
type Monitor struct {
	options Options
	begun   time.Time
	state   atomic.Uint32 // identity.EpochState, as the loop has last seen it
	news    chan struct{} // a member of another epoch was met for the first time
	rumours chan struct{} // a caller was not believed: see hearsay

	mu      sync.Mutex
	tracker *Tracker
	why     string // this member serves nothing
	// hearsay are the members in whose name a process called with another epoch, and was not believed. They are asked
	// themselves, at the addresses that this member has.
	hearsay map[consensus.MemberID]bool
}

// New returns a Monitor that knows of no other epoch.
func New(options Options) *Monitor {
	return &Monitor{
		options: options, begun: options.Clock.Now(), news: make(chan struct{}, 1),
		rumours: make(chan struct{}, 1), hearsay: map[consensus.MemberID]bool{},
		tracker: NewTracker(options.Own, identity.Rules{}, options.ElectionTimeout),
	}
}

func (m *Monitor) now() time.Duration { return m.options.Clock.Now().Sub(m.begun) }

// Meet records the claim of a process that called or answered. One that is not believed changes nothing: it only makes this
// member ask soon, where it knows the named member to be.
func (m *Monitor) Meet(c identity.Claim, evidence identity.Evidence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.tracker.Foreign(&c):
	case !evidence.Believed(m.tracker.state.Rules):
		if len(m.hearsay) < maxAsked {
			m.hearsay[c.Member] = true
			wake(m.rumours)
		}
	case m.tracker.Meet(c, evidence):
		wake(m.news)
	}
}

func wake(waiting chan struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// Update returns what the member may do now. led says that it knows a leader.
func (m *Monitor) Update(led bool) identity.EpochState {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if led {
		m.tracker.Led(now)
	}
	state := m.tracker.State(now)
	m.state.Store(uint32(state))
	if state == identity.Superseded {
		m.why = m.tracker.state.WaysOut()
	}
	return state
}

// State is what the last Update returned.
func (m *Monitor) State() identity.EpochState { return identity.EpochState(m.state.Load()) }

// Superseded returns a *SupersededError while this member serves nothing because the cluster was recovered without it.
func (m *Monitor) Superseded() error {
	if m.State() != identity.Superseded {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &SupersededError{m.why}
}

// Alarms returns one text for each member of another epoch that was met lately: who it is, and what to do.
func (m *Monitor) Alarms() []string {
	_, alarms := m.met()
	return alarms
}

// met returns the members of other epochs that were met lately, each by the name it has now: it may have called before
// this member had applied its name.
func (m *Monitor) met() ([]identity.Foreign, []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	foreign, alarms := m.tracker.Met()
	named := false
	for i := range foreign {
		if foreign[i].Name != "" {
			continue
		}
		if name := m.options.Name(foreign[i].Member); name != "" {
			m.tracker.Name(foreign[i].Member, name)
			named = true
		}
	}
	if named {
		return m.tracker.Met()
	}
	return foreign, alarms
}

// Run asks the members that are not connected, and those that a recovery has dropped, for their epoch, until ctx ends.
func (m *Monitor) Run(ctx context.Context) error {
	dropped, err := m.options.Dropped()
	if err != nil {
		m.options.Logger.Warn("whom the recovery has dropped is not known any more; they are not looked for", "err", err)
	}
	told := map[consensus.MemberID]time.Time{}
	for {
		m.mu.Lock()
		m.tracker.Ask()
		m.mu.Unlock()
		m.askAll(ctx, append(m.options.Unconnected(), dropped...))
		m.mu.Lock()
		pause := m.tracker.Asked()
		m.mu.Unlock()
		if !m.pause(ctx, pause, dropped, told) {
			return nil
		}
	}
}

// pause waits between two rounds, and tells what is news. Those in whose name a process called are asked meanwhile, at most
// once in firstPause, however often it calls. It returns false once ctx ends.
func (m *Monitor) pause(
	ctx context.Context, pause time.Duration, dropped []consensus.Member, told map[consensus.MemberID]time.Time,
) bool {
	rumours := m.rumours
	var rested <-chan time.Time
	for due := time.After(pause); ; {
		m.tell(told)
		select {
		case <-m.news:
		case <-rumours:
			m.askAll(ctx, m.named(append(m.options.Unconnected(), dropped...)))
			rumours, rested = nil, time.After(firstPause)
		case <-rested:
			rumours = m.rumours
		case <-due:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// named returns those of peers in whose name a process called.
func (m *Monitor) named(peers []consensus.Member) []consensus.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	peers = slices.DeleteFunc(peers, func(peer consensus.Member) bool { return !m.hearsay[peer.ID] })
	clear(m.hearsay)
	return peers
}

// askAll asks each once, for an election timeout at most.
func (m *Monitor) askAll(ctx context.Context, peers []consensus.Member) {
	peers = peers[:min(len(peers), maxAsked)]
	ctx, cancel := context.WithTimeout(ctx, m.options.ElectionTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range peers {
		asking.Go(func() { m.ask(ctx, &peers[i]) })
	}
	asking.Wait()
}

func (m *Monitor) ask(ctx context.Context, peer *consensus.Member) {
	if peer.Name != "" {
		m.mu.Lock()
		m.tracker.Name(peer.ID, peer.Name)
		m.mu.Unlock()
	}
	for _, url := range peer.PeerURLs {
		g, err := m.options.Greet(ctx, url)
		if err != nil || g.Stage != identity.Founded {
			continue
		}
		g.Claim.Address = url
		m.Meet(g.Claim, identity.Dialled)
	}
}

// tell logs the alarms: new ones at once, and all of them again every alarmInterval.
func (m *Monitor) tell(told map[consensus.MemberID]time.Time) {
	foreign, alarms := m.met()
	superseded := m.Superseded()
	for i := range foreign {
		f := &foreign[i]
		if now := m.options.Clock.Now(); now.Sub(told[f.Member]) >= alarmInterval {
			told[f.Member] = now
			text, log := alarms[i], m.options.Logger.Warn
			if superseded != nil {
				text, log = superseded.Error(), m.options.Logger.Error
			}
			log("a member of another epoch of this cluster: "+text, "peer", f.Member.String(), "name", f.Name,
				"address", f.Address, "epoch", f.Epoch.String(), "own-epoch", m.options.Own.Epoch.String())
		}
	}
}
