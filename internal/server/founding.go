package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// newcomer is a process without data, on its way to be a member.
type newcomer struct {
	bootstrap *bootstrap
	first     founding
	waiter    waiter         // at the place of the member that this process was
	startup   *startupServer // answers clients meanwhile

	mu      sync.Mutex
	founder identity.Founder

	foreign []consensus.MemberID // those that answered last, and are of another cluster
	failed  map[string]error     // of the last greetings, by URL

	waiting  string // for whom, when it was last looked what is wrong with their URLs
	wrong    string // what was found
	lookedAt time.Time

	said   string // in the log last
	saidAt time.Time
}

// foundCluster makes this member's data once all members of the new cluster have met: see identity.Founder. It waits for
// them, and says for whom.
func (b *bootstrap) foundCluster(ctx context.Context, first founding) error {
	n := &newcomer{bootstrap: b, first: first}
	if _, err := b.ownStorage(); err != nil {
		return err
	}
	record, err := datadir.ReadFounding(b.data)
	if err != nil {
		return err
	}
	own := identity.Claim{Cluster: first.cluster, Member: first.self, Storage: record.Storage, Address: b.address(&first)}
	n.founder = identity.Founder{
		Own: own, Members: first.config.Members, Bindings: record.Bindings,
		Majority: b.cfg.Bootstrap.Founding == config.FoundingMajority, Excluded: record.Excluded,
	}
	if err := n.open(); err != nil {
		return err
	}
	defer n.startup.close()
	made, err := n.wait(ctx)
	if err := errors.Join(err, n.waiter.voice.close()); err != nil {
		return err
	}
	return makeData(b.data, made.identity, made.config)
}

// foundRestored founds the cluster that a restored directory was made for. As in etcd the directory says which, not the flags.
func (b *bootstrap) foundRestored(ctx context.Context, restored *datadir.Restored) error {
	if b.cfg.Explicit("name") && b.cfg.Name != restored.Name {
		return fmt.Errorf("--data-dir %s was restored for member %q, not for %q: give this member its own directory",
			b.cfg.Storage.DataDir, restored.Name, b.cfg.Name)
	}
	b.logger.Info("this directory was restored and not started since", "from", restored.From, "member", restored.Self.String(),
		"cluster", restored.Cluster.String())
	first := founding{cluster: restored.Cluster, self: restored.Self, restored: true}
	for _, m := range restored.Members {
		first.config.Members = append(first.config.Members, m)
		first.config.Voters = append(first.config.Voters, m.ID)
	}
	return b.foundCluster(ctx, first)
}

// outcome is what a newcomer has become.
type outcome struct {
	identity wal.Identity
	config   consensus.Config
}

// wait asks the others until it is known what this member is.
func (n *newcomer) wait(ctx context.Context) (outcome, error) {
	for {
		decision := n.ask(ctx)
		switch decision.Verdict {
		case identity.Begin:
			n.bootstrap.logger.Info("founding a cluster", "cluster", n.first.cluster.String(), "member", n.first.self.String(),
				"storage", n.founder.Own.Storage.String(), "members", len(n.first.config.Members),
				"bound", decision.Bindings != nil)
			return outcome{n.identity(n.first.self), n.founder.Config(decision.Bindings)}, nil
		case identity.Record:
			if err := n.record(decision.Bindings, false); err != nil {
				return outcome{}, err
			}
			continue
		case identity.Wait:
			waiting := n.founder.Waiting(decision.Missing) + n.otherClusters()
			n.say("waits for the other members of --initial-cluster to found the cluster: " + waiting +
				n.wrongURLs(ctx, waiting))
		case identity.Broken:
			n.say(decision.Text)
		default:
			if made, found, err := n.awaitLostPlace(ctx, decision); found || err != nil {
				return made, err
			}
		}
		select {
		case <-ctx.Done():
			return outcome{}, fmt.Errorf("stopped before the cluster was founded: this member %s", n.said)
		case <-time.After(greetPause):
		}
	}
}

// errRetired is that the cluster of --initial-cluster runs, and expects no member here any more. A process with --join asks it
// to become one.
var errRetired = errors.New("the cluster runs without this member")

// awaitLostPlace is for a process that has heard that the cluster runs without its disk: it founds nothing any more, reports
// itself, and waits until another member is added at its peer URLs. With --join it ends with errRetired if none is expected
// there.
func (n *newcomer) awaitLostPlace(ctx context.Context, decision identity.Decision) (made outcome, found bool, err error) {
	if !n.founder.Excluded {
		if err := n.record(n.founder.Bindings, true); err != nil {
			return outcome{}, false, err
		}
	}
	text := decision.Text
	p, known := n.askForPlace(ctx)
	switch {
	case !known && decision.Verdict == identity.Retired:
		text += ". But no member could tell yet who is expected at these peer URLs, for want of a leader: wait for one first"
	case known && p.isLost():
		if err := n.waiter.moveTo(p); err != nil {
			return outcome{}, false, err
		}
		text = n.waiter.textNow(ctx)
	case known && p.owner.ID == consensus.NoMember && len(n.bootstrap.cfg.Bootstrap.Join) > 0 && !n.first.restored:
		return outcome{}, true, errRetired
	case known && p.owner.ID != consensus.NoMember && p.owner.ID != n.first.self:
		n.bootstrap.logger.Info("this process takes the place of the member whose disk was lost", "member", p.owner.ID.String())
		own := n.identity(p.owner.ID)
		own.Epoch = p.Epoch
		return outcome{identity: own}, true, n.bootstrap.fits(&p.Description)
	}
	n.say(text)
	return outcome{}, false, nil
}

func (n *newcomer) identity(id consensus.MemberID) wal.Identity {
	return wal.Identity{Cluster: n.first.cluster, Member: id, Storage: n.founder.Own.Storage}
}

// record puts what was learned on disk before another process hears of it.
func (n *newcomer) record(bindings []identity.Bound, excluded bool) error {
	err := datadir.WriteFounding(n.bootstrap.data, datadir.Founding{
		Storage: n.founder.Own.Storage, Bindings: bindings, Excluded: excluded,
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.founder.Bindings, n.founder.Excluded = bindings, excluded
	return nil
}

// say tells the log, and those who ask whether this member is ready, what is waited for.
func (n *newcomer) say(text string) {
	n.startup.say(text)
	if text == n.said && time.Since(n.saidAt) < waitingLog {
		return
	}
	n.said, n.saidAt = text, time.Now()
	n.bootstrap.logger.Warn("not a member yet: it " + text)
}

// others are whom this process asks: the members of --initial-cluster, itself among them, and then, without an id, those at
// other URLs of --join. Where all founders have lost their disks only members that joined later know that the cluster runs.
func (n *newcomer) others() []consensus.Member {
	all := slices.Clone(n.first.config.Members)
	for _, url := range urlTexts(n.bootstrap.cfg.JoinURLs()) {
		if !slices.ContainsFunc(all, func(m consensus.Member) bool { return slices.Contains(m.PeerURLs, url) }) {
			all = append(all, consensus.Member{PeerURLs: []string{url}})
		}
	}
	return all
}

// ask greets all others at once and judges what they say.
func (n *newcomer) ask(ctx context.Context) identity.Decision {
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	var asking sync.WaitGroup
	others := n.others()
	answers := make([]*identity.Greeting, len(others))
	failures := make([]map[string]error, len(answers))
	foreign := make([]bool, len(answers))
	for i := range others {
		m := &others[i]
		if m.ID == n.first.self {
			continue
		}
		asking.Go(func() { answers[i], foreign[i], failures[i] = n.greet(ctx, m) })
	}
	asking.Wait()
	n.foreign, n.failed = nil, map[string]error{}
	for i := range n.first.config.Members { // the founding waits for nobody else
		maps.Copy(n.failed, failures[i])
		if foreign[i] {
			n.foreign = append(n.foreign, others[i].ID)
		}
	}
	var met []identity.Greeting
	for _, answer := range answers {
		if answer != nil {
			met = append(met, *answer)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.founder.Decide(met)
}

// otherClusters names those who answer for another cluster.
func (n *newcomer) otherClusters() string {
	if len(n.foreign) == 0 {
		return ""
	}
	if n.first.restored {
		return "; of another cluster, by what they say: " + n.founder.Waiting(n.foreign) + ". If these serve the cluster " +
			"that is to go on, restore no more: all that was written since the backup would be lost. Stop this process, " +
			n.bootstrap.cfg.StartOver("") + ". Only if nothing of that " +
			"cluster is to be kept, restore every member from the same file, with the same --initial-cluster, " +
			"--initial-cluster-token and --bump-revision"
	}
	return "; of another cluster, by what they say: " + n.founder.Waiting(n.foreign) +
		" (compare --initial-cluster and --initial-cluster-token of all)"
}

// greet asks one of others at all its URLs; nil if it does not answer, or is another member: see identity.Founder.Hears.
func (n *newcomer) greet(
	ctx context.Context, m *consensus.Member,
) (answer *identity.Greeting, foreign bool, failed map[string]error) {
	failed = map[string]error{}
	for _, url := range m.PeerURLs {
		body, err := n.waiter.voice.peers.CallURL(ctx, url, member.MethodGreet, nil, member.MostGreeting)
		if err != nil {
			refused := identity.Read(status.Convert(err).Message())
			foreign = foreign || refused != nil && refused.Reason == identity.ForeignCluster
			failed[url] = err
			continue
		}
		var g identity.Greeting
		if err := json.Unmarshal(body, &g); err == nil && n.founder.Hears(m.ID, &g) {
			return &g, false, nil
		}
	}
	return nil, foreign, failed
}

// wrongURLs says what is wrong with those URLs of --initial-cluster at which a process listens and no member answers. It looks
// when another one is waited for than before, and now and then.
func (n *newcomer) wrongURLs(ctx context.Context, waiting string) string {
	if waiting == n.waiting && time.Since(n.lookedAt) < waitingLog {
		return n.wrong
	}
	n.waiting, n.wrong, n.lookedAt = waiting, "", time.Now()
	for _, url := range slices.Sorted(maps.Keys(n.failed)) {
		var other *transport.NoPeerPortError
		switch err := transport.Explain(ctx, n.bootstrap.asking, url, n.failed[url]); {
		case errors.As(err, &other):
			n.wrong += fmt.Sprintf("; %s in --initial-cluster is a wrong URL: %v", url, other)
		case mismatchedTLS(err):
			n.wrong += fmt.Sprintf("; %s: %s (see --peer-trusted-ca-file, --peer-cert-file and --peer-key-file of both)", url,
				plainStatus(err))
		}
	}
	return n.wrong
}

// askForPlace asks members that run what the cluster has at this process's peer URLs.
func (n *newcomer) askForPlace(ctx context.Context) (place, bool) {
	own := urlTexts(n.bootstrap.cfg.Advertise.PeerURLs)
	for _, m := range n.others() {
		for _, url := range m.PeerURLs {
			if slices.Contains(own, url) {
				continue
			}
			asked, cancel := context.WithTimeout(ctx, greetPatience)
			d, err := member.Describe(asked, n.bootstrap.asking, url)
			cancel()
			if err == nil && d.Cluster == n.first.cluster {
				return n.bootstrap.placeIn(d), true
			}
		}
	}
	return place{}, false
}

// open lets others and clients find this process while it waits.
func (n *newcomer) open() error {
	n.waiter = waiter{bootstrap: n.bootstrap, storage: n.founder.Own.Storage,
		voice: voice{bootstrap: n.bootstrap, handler: greeter{n: n}}}
	if err := n.waiter.voice.answerAs(n.founder.Own); err != nil {
		return err
	}
	n.startup = n.bootstrap.startup()
	return nil
}

// greeter answers other members while there is no member here.
type greeter struct {
	nobody
	n *newcomer
}

func (g greeter) Call(_ context.Context, method string, _ []byte) ([]byte, error) {
	if method != member.MethodGreet {
		return nil, errNoMember
	}
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	return json.Marshal(g.n.founder.Greeting())
}
