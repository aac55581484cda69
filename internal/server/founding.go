package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/storage/wal"
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

// newcomer is a process without data, on its way to be a member.
type newcomer struct {
	bootstrap *bootstrap
	first     founding
	peers     *transport.Transport // answers others meanwhile
	startup   *startupServer       // answers clients meanwhile

	mu      sync.Mutex
	founder identity.Founder

	foreign []consensus.MemberID // who answered last, and is of another cluster
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
	made, err := n.wait(ctx)
	if err := errors.Join(err, n.close()); err != nil {
		return err
	}
	return makeData(b.data, made.identity, made.config)
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
			n.say(decision.Text)
			if !n.founder.Excluded {
				if err := n.record(n.founder.Bindings, true); err != nil {
					return outcome{}, err
				}
			}
			if id, epoch := n.replacement(ctx); id != consensus.NoMember {
				n.bootstrap.logger.Info("this process takes the place of the member whose disk was lost", "member", id.String())
				own := n.identity(id)
				own.Epoch = epoch
				return outcome{identity: own}, nil
			}
		}
		select {
		case <-ctx.Done():
			return outcome{}, fmt.Errorf("stopped before the cluster was founded: this member %s", n.said)
		case <-time.After(greetPause):
		}
	}
}

func (n *newcomer) identity(id consensus.MemberID) wal.Identity {
	return wal.Identity{Cluster: n.first.cluster, Member: id, Storage: n.founder.Own.Storage}
}

// record puts what was learned on disk before anybody hears of it.
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

// ask greets all others at once and judges what they say.
func (n *newcomer) ask(ctx context.Context) identity.Decision {
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	var asking sync.WaitGroup
	answers := make([]*identity.Greeting, len(n.first.config.Members))
	failures := make([]map[string]error, len(answers))
	foreign := make([]bool, len(answers))
	for i := range n.first.config.Members {
		m := &n.first.config.Members[i]
		if m.ID == n.first.self {
			continue
		}
		asking.Go(func() { answers[i], foreign[i], failures[i] = n.greet(ctx, m) })
	}
	asking.Wait()
	n.foreign, n.failed = nil, map[string]error{}
	for i := range failures {
		maps.Copy(n.failed, failures[i])
	}
	for i := range foreign {
		if foreign[i] {
			n.foreign = append(n.foreign, n.first.config.Members[i].ID)
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
			"that is to go on, restore no more: all that was written since the backup would be lost. Stop this process, move " +
			n.bootstrap.cfg.Storage.DataDir + " aside, start it with an empty directory and the flags that it had, and run " +
			"`quorate member reset " + n.bootstrap.cfg.Name + "` at one that serves. Only if nothing of that cluster is to " +
			"be kept, restore every member from the same file, with the same --initial-cluster, --initial-cluster-token and " +
			"--bump-revision"
	}
	return "; of another cluster, by what they say: " + n.founder.Waiting(n.foreign) +
		" (compare --initial-cluster and --initial-cluster-token of all)"
}

// greet asks one member at all its URLs; nil if it does not answer, or is somebody else: of another cluster, for one.
func (n *newcomer) greet(
	ctx context.Context, m *consensus.Member,
) (answer *identity.Greeting, foreign bool, failed map[string]error) {
	failed = map[string]error{}
	for _, url := range m.PeerURLs {
		body, err := n.peers.CallURL(ctx, url, member.MethodGreet, nil)
		if err != nil {
			refused := identity.Read(status.Convert(err).Message())
			foreign = foreign || refused != nil && refused.Reason == identity.ForeignCluster
			failed[url] = err
			continue
		}
		var g identity.Greeting
		if err := json.Unmarshal(body, &g); err == nil && g.Claim.Cluster == n.first.cluster && g.Claim.Member == m.ID {
			return &g, false, nil
		}
	}
	return nil, foreign, failed
}

// wrongURLs says what is wrong with those URLs of --initial-cluster at which somebody listens and no member answers. It
// looks when another one is waited for than before, and now and then.
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

// replacement finds the member that was added at this member's peer URLs in place of the lost one, and the epoch of the
// cluster.
func (n *newcomer) replacement(ctx context.Context) (consensus.MemberID, consensus.Epoch) {
	own := urlTexts(n.bootstrap.cfg.Advertise.PeerURLs)
	for _, m := range n.first.config.Members {
		for _, url := range m.PeerURLs {
			if slices.Contains(own, url) {
				continue
			}
			asked, cancel := context.WithTimeout(ctx, greetPatience)
			d, err := member.Describe(asked, n.bootstrap.asking, url)
			cancel()
			if err != nil || d.Cluster != n.first.cluster {
				continue
			}
			for _, now := range d.Members {
				if now.ID != n.first.self && slices.Equal(now.PeerURLs, own) && !slices.Contains(d.Bound, now.ID) {
					return now.ID, d.Epoch
				}
			}
		}
	}
	return consensus.NoMember, consensus.FoundingEpoch
}

// open lets others and clients find this process while it waits.
func (n *newcomer) open() error {
	listeners, err := n.bootstrap.listen()
	if err != nil {
		return err
	}
	own := &n.founder.Own
	n.peers, err = transport.New(transport.Options{
		Self:    identity.Claim{Member: own.Member, Cluster: own.Cluster, Storage: own.Storage, Address: own.Address},
		Handler: greeter{n}, Logger: n.bootstrap.logger, Listeners: listeners, TLS: n.bootstrap.asking.TLS,
		OpenMethods: []string{member.MethodGreet}, Delay: n.bootstrap.delay,
	})
	if err != nil {
		closeAll(listeners)
		return err
	}
	n.startup = n.bootstrap.startup()
	return nil
}

func (n *newcomer) close() error {
	n.startup.close()
	return n.peers.Close()
}

// greeter answers other members while there is no member here.
type greeter struct{ n *newcomer }

func (g greeter) Receive([]consensus.Message) {}

func (g greeter) PeerLost(consensus.MemberID) {}

func (g greeter) ReceiveSnapshot(consensus.MemberID, consensus.SnapshotMeta, io.Reader) error {
	return status.Error(codes.Unavailable, "this process is no member yet")
}

func (g greeter) Call(_ context.Context, method string, _ []byte) ([]byte, error) {
	if method != member.MethodGreet {
		return nil, status.Error(codes.Unavailable, "this process is no member yet")
	}
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	return json.Marshal(g.n.founder.Greeting())
}
