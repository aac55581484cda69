package member

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// SupersededError is the answer of a member whose cluster was recovered without it. Nothing happened.
type SupersededError struct{ Text string }

func (e *SupersededError) Error() string { return e.Text }

const (
	// epochPause is the time between two rounds of asking those who are not connected which epoch they are of; it doubles
	// up to epochPauseMost.
	epochPause     = time.Second
	epochPauseMost = 15 * time.Second
	// epochAlarm is how often the log tells of the same member of another epoch.
	epochAlarm = time.Minute
	// epochGrace is for how many election timeouts a member without a leader counts as one that has a quorum: an election
	// is no loss of a quorum.
	epochGrace = 5
	// maxGreeted bounds how many addresses are asked in one round.
	maxGreeted = 64
)

// epochs applies identity.Succession to a member: what is heard of other epochs goes in, and the loop asks what it may do.
type epochs struct {
	standing atomic.Uint32 // identity.Standing
	patience time.Duration // an election timeout
	news     chan struct{} // somebody was met who was not known

	mu    sync.Mutex
	own   identity.Claim
	state identity.Succession
	names map[consensus.MemberID]string
	why   string // it serves nothing
}

func (e *epochs) init(d *datadir.Data, patience time.Duration) {
	e.own = identity.Claim{Cluster: d.Identity.Cluster, Epoch: d.Identity.Epoch, Member: d.Identity.Member}
	e.state.Own, e.patience = d.Identity.Epoch, patience
	e.names, e.news = map[consensus.MemberID]string{}, make(chan struct{}, 1)
}

// meet notes who called, or answered. A process that is no member yet has no life.
func (e *epochs) meet(c identity.Claim, name string) {
	if c.Cluster != e.own.Cluster || c.Epoch == e.own.Epoch || c.Member == consensus.NoMember || c.Life.IsZero() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if name == "" {
		name = e.names[c.Member]
	}
	if e.state.Meet(identity.Foreign{Claim: c, Name: name}) {
		select {
		case e.news <- struct{}{}:
		default:
		}
	}
}

// look updates what the member may do. quorate says that it has a quorum.
func (e *epochs) look(quorate bool) identity.Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	standing := e.state.Standing(quorate)
	e.standing.Store(uint32(standing))
	if standing == identity.Superseded {
		e.why = e.state.WaysOut()
	}
	return standing
}

// now is what the member may do, as the loop has last seen.
func (e *epochs) now() identity.Standing { return identity.Standing(e.standing.Load()) }

// Superseded returns a *SupersededError while this member serves nothing because the cluster was recovered without it.
func (m *Member) Superseded() error {
	e := &m.epochs
	if e.now() != identity.Superseded {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return &SupersededError{e.why}
}

// ForeignEpochs returns how many members of other epochs of the cluster are about, and what to do about each.
func (m *Member) ForeignEpochs() []string {
	e := &m.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	var alarms []string
	for _, f := range e.state.Foreign() {
		alarms = append(alarms, e.state.Alarm(&f))
	}
	return alarms
}

// ticksNow reports whether time may pass for the core: it does not while this member may not campaign.
func (m *Member) ticksNow() bool {
	m.epochs.look(m.quorate())
	return !m.epochs.now().Mute()
}

// quorate reports whether this member has a quorum, or had one a moment ago.
func (m *Member) quorate() bool {
	lost := m.lostAt.Load()
	return m.Leader() != consensus.NoMember ||
		lost != 0 && m.options.Clock.Now().Sub(time.Unix(0, lost)) < epochGrace*m.epochs.patience
}

// watchEpochs asks those who are not connected, and those whom a recovery has dropped, which epoch they are of.
func (m *Member) watchEpochs() error {
	dropped, err := m.data.Dropped()
	if err != nil {
		m.logger.Warn("whom the recovery has dropped is not known any more; they are not looked for", "err", err)
	}
	e := &m.epochs
	told := map[consensus.MemberID]time.Time{}
	for pause := epochPause; ; pause = min(2*pause, epochPauseMost) {
		m.greetAll(dropped)
		e.mu.Lock()
		e.state.Looked()
		e.mu.Unlock()
		for due := time.After(pause); due != nil; {
			m.tellEpochs(told)
			select {
			case <-e.news:
			case <-due:
				due = nil
			case <-m.stopping.Done():
				return nil
			}
		}
	}
}

// greetAll asks each once, for an election timeout at most. Nobody campaigns before that was done.
func (m *Member) greetAll(dropped []consensus.Member) {
	config := m.configNow()
	targets := make([]consensus.Member, 0, len(config.Members)+len(dropped))
	for _, peer := range config.Members {
		if _, connected := m.transport.ConnectedSince(peer.ID); peer.ID != m.ID() && !connected {
			peer.Name = m.nameOf(peer.ID)
			targets = append(targets, peer)
		}
	}
	targets = append(targets, dropped...)
	targets = targets[:min(len(targets), maxGreeted)]
	ctx, cancel := context.WithTimeout(m.stopping, m.epochs.patience)
	defer cancel()
	var asking sync.WaitGroup
	for i := range targets {
		asking.Go(func() { m.greetOne(ctx, &targets[i]) })
	}
	asking.Wait()
}

func (m *Member) greetOne(ctx context.Context, peer *consensus.Member) {
	m.epochs.mu.Lock()
	m.epochs.names[peer.ID] = peer.Name
	m.epochs.mu.Unlock()
	for _, url := range peer.PeerURLs {
		body, err := m.transport.CallURL(ctx, url, MethodGreet, nil)
		var g identity.Greeting
		if err != nil || json.Unmarshal(body, &g) != nil || g.Stage != identity.Founded {
			continue
		}
		g.Claim.Address = url
		name := ""
		if g.Claim.Member == peer.ID {
			name = peer.Name
		}
		m.epochs.meet(g.Claim, name)
	}
}

// tellEpochs writes the alarms to the log: of who is new, and of all again once in a while.
func (m *Member) tellEpochs(told map[consensus.MemberID]time.Time) {
	e := &m.epochs
	e.mu.Lock()
	foreign := e.state.Foreign()
	var alarms []string
	for i := range foreign {
		alarms = append(alarms, e.state.Alarm(&foreign[i]))
	}
	e.mu.Unlock()
	superseded := m.Superseded()
	for i := range foreign {
		f := &foreign[i]
		if now := m.options.Clock.Now(); now.Sub(told[f.Member]) >= epochAlarm {
			told[f.Member] = now
			text, log := alarms[i], m.logger.Warn
			if superseded != nil {
				text, log = superseded.Error(), m.logger.Error
			}
			log("a member of another epoch of this cluster: "+text, "peer", f.Member.String(), "name", f.Name,
				"address", f.Address, "epoch", f.Epoch.String(), "own-epoch", e.own.Epoch.String())
		}
	}
}

// sayWho is the claim that this member answers greetings with.
func (m *Member) sayWho() identity.Claim {
	own := m.epochs.own
	own.Life = m.data.Life()
	return own
}

// met notes the epoch of who calls.
func (m *Member) met(ctx context.Context) { m.epochs.meet(transport.CallerClaim(ctx), "") }
