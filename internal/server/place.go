package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

const (
	// greetPause is how long a process that has no data waits before it asks the others again.
	greetPause = 200 * time.Millisecond
	// greetPatience is how long one of them is waited for. Those of a new cluster mostly do not listen yet, which is known at
	// once.
	greetPatience = time.Second
	// waitingLog is how often the log says again what a process without data waits for.
	waitingLog = 30 * time.Second
)

// place is what a running cluster has at this process's own peer URLs.
type place struct {
	member.Description
	owner consensus.Member // the member that is expected there; zero: none
	bound bool             // owner has a data directory: another one, if this process has no data
}

// placeIn finds this process's place in what a member says.
func (b *bootstrap) placeIn(d member.Description) place {
	p := place{Description: d}
	own := urlTexts(b.cfg.Advertise.PeerURLs)
	for i := range d.Members {
		if membership.SameURLs(d.Members[i].PeerURLs, own) {
			p.owner = d.Members[i]
		}
	}
	p.bound = slices.Contains(d.Bound, p.owner.ID)
	return p
}

// isLost reports whether the place is that of a member which has, or had, another data directory.
func (p *place) isLost() bool { return p.owner.ID != consensus.NoMember && p.bound }

// ownerName is by what commands find the owner.
func (p *place) ownerName() string {
	if p.owner.Name != "" {
		return p.owner.Name
	}
	return p.owner.ID.String()
}

// claimWith is what a process says of itself that waits at the peer URLs of a member with a data directory that is not the
// member's. It reports itself, no more: members refuse it, and so learn that the disk is lost.
func (p *place) claimWith(storage consensus.StorageID, address string) identity.Claim {
	return identity.Claim{Cluster: p.Cluster, Epoch: p.Epoch, Member: p.owner.ID, Storage: storage, Address: address}
}

// lostText says that the owner's data directory is not here, and what to do.
func (p *place) lostText(storage consensus.StorageID) string {
	return fmt.Sprintf("has lost its disk: in cluster %v, which runs, member %s (%v) at these peer URLs is bound to another "+
		"data directory; this one is new and empty (%v). It does not vote. %s", p.Cluster, p.ownerName(), p.owner.ID, storage,
		identity.ResetAdvice(p.ownerName()))
}

// residentText says that the owner itself is at these URLs, and what to do.
func (p *place) residentText() string {
	urls, name := strings.Join(p.owner.PeerURLs, ","), p.ownerName()
	return fmt.Sprintf("%s is probably mistyped in --initial-advertise-peer-urls of this process: member %s (%v) of cluster "+
		"%v is there, and runs with its data. Correct the URL, also in --initial-cluster, if that names it. %s itself needs "+
		"nothing; if this process was to be %s, it is one too many: stop this one", urls, name, p.owner.ID, p.Cluster, name,
		name)
}

// fits refuses a cluster of which this process can not be a member.
func (b *bootstrap) fits(d *member.Description) error {
	if b.memory < d.NeedsMemory {
		return fmt.Errorf("cannot join: %w", &memory.TooLittleError{Has: b.memory, Needs: d.NeedsMemory})
	}
	if d.Level > level.Own {
		return fmt.Errorf("cannot join: %w", &level.TooLowError{Own: level.Own, Active: d.Level})
	}
	return nil
}

// ownerAnswers reports whether the owner of the place runs at this process's peer URLs: the process is not where it says, or is
// a second one.
func (b *bootstrap) ownerAnswers(ctx context.Context, p *place, storage consensus.StorageID) bool {
	for _, url := range p.owner.PeerURLs {
		asked, cancel := context.WithTimeout(ctx, greetPatience)
		body, err := transport.CallURL(asked, b.asking, url, member.MethodGreet, nil, member.MostGreeting)
		cancel()
		var g identity.Greeting
		if err == nil && json.Unmarshal(body, &g) == nil && g.Stage == identity.Founded && g.Claim.Cluster == p.Cluster &&
			g.Claim.Member == p.owner.ID && g.Claim.Storage != storage {
			return true
		}
	}
	return false
}

// waiter is a process that waits until the place of a lost member is given to a new one.
type waiter struct {
	bootstrap *bootstrap
	storage   consensus.StorageID
	place     place
	voice     voice

	lookedAt time.Time // for the owner
	resident bool
}

// textNow says what is wrong. Now and then it looks whether the owner is there after all.
func (w *waiter) textNow(ctx context.Context) string {
	if time.Since(w.lookedAt) > waitingLog {
		w.lookedAt, w.resident = time.Now(), w.bootstrap.ownerAnswers(ctx, &w.place, w.storage)
	}
	if w.resident {
		return "waits: " + w.place.residentText()
	}
	return w.place.lostText(w.storage)
}

// moveTo makes the waiter wait at another place than before, if it is one, and tells members so.
func (w *waiter) moveTo(p place) error {
	if p.owner.ID != w.place.owner.ID {
		w.lookedAt = time.Time{}
	}
	w.place = p
	return w.voice.answerAs(p.claimWith(w.storage, advertised(w.bootstrap.cfg)))
}

// awaitPlace waits at the place of a member that is bound to a data directory which is not this empty one. It reports itself to
// the members, so that an operator may give the place to a new member, and returns the place once that was done, or once no
// member is expected there any more. Data made in the name of the lost member would be refused by all others, and be of no use
// for ever.
func (b *bootstrap) awaitPlace(
	ctx context.Context, p place, storage consensus.StorageID, look func(context.Context) (member.Description, error),
) (now place, err error) {
	w := &waiter{bootstrap: b, storage: storage, voice: voice{bootstrap: b, handler: nobody{}}}
	if b.ownerAnswers(ctx, &p, storage) {
		return p, fmt.Errorf("cannot join: %s", p.residentText())
	}
	startup := b.startup()
	defer startup.close()
	defer func() { err = errors.Join(err, w.voice.close()) }()
	said, saidAt := "", time.Time{}
	for {
		if p.isLost() {
			if err := w.moveTo(p); err != nil {
				return p, err
			}
			text := w.textNow(ctx)
			if startup.say(text); text != said || time.Since(saidAt) > waitingLog {
				b.logger.Warn("not a member yet: it " + text)
				said, saidAt = text, time.Now()
			}
		} else if p.owner.ID != consensus.NoMember || len(b.cfg.Bootstrap.Join) > 0 {
			return p, b.fits(&p.Description)
		} // else, between the end of the lost member and the beginning of the new one, no member is expected here
		select {
		case <-ctx.Done():
			return p, errors.New("stopped: this member " + said)
		case <-time.After(greetPause):
		}
		if d, err := look(ctx); err == nil {
			p = b.placeIn(d)
		}
	}
}

// voice answers members while there is no member here, in the name of whom they expect.
type voice struct {
	bootstrap *bootstrap
	handler   transport.Handler
	spoken    identity.Claim       // with what it answers
	peers     *transport.Transport // nil: it is silent
}

// answerAs listens at the peer URLs, and answers with a claim, as a process that has no data of the member.
func (v *voice) answerAs(claim identity.Claim) error {
	claim.Empty = true
	if v.peers != nil && v.spoken == claim {
		return nil
	}
	if err := v.close(); err != nil {
		return err
	}
	listeners, err := v.bootstrap.listen()
	if err != nil {
		return err
	}
	peers, err := transport.New(transport.Options{
		Self: claim, Handler: v.handler, Logger: v.bootstrap.logger, Listeners: listeners, TLS: v.bootstrap.asking.TLS,
		OpenMethods: member.OpenMethods(), Delay: v.bootstrap.delay,
	})
	if err != nil {
		closeAll(listeners)
		return err
	}
	v.spoken, v.peers = claim, peers
	return nil
}

func (v *voice) close() error {
	if v.peers == nil {
		return nil
	}
	peers := v.peers
	v.peers = nil
	return peers.Close()
}

// nobody hears members that speak to one which is not here, and takes nothing from them.
type nobody struct{}

func (nobody) Receive([]consensus.Message) {}

func (nobody) PeerLost(consensus.MemberID) {}

func (nobody) ReceiveSnapshot(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error {
	return errNoMember
}

func (nobody) Call(context.Context, string, []byte) ([]byte, error) { return nil, errNoMember }

var errNoMember = status.Error(codes.Unavailable, "this process is no member yet")
