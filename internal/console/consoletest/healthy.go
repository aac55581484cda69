package consoletest

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// Now is the time of a cluster that Healthy makes, in Unix milliseconds.
const Now = int64(1_800_000_000_000)

const day = int64(24 * 3600_000)

// Healthy is what n voters observe of which nothing is wrong. The first one leads, and has asked the others. Member i has the
// id i, from 1 on, and is called m1, m2 and so on.
func Healthy(n int) *quoratepb.Collected {
	c := &quoratepb.Collected{AtMs: Now, ByMember: 1}
	config := &quoratepb.ObservedConfig{Index: 7, Settled: true, Level: 3, OwnLevel: 3}
	for id := range uint64(n) {
		name := fmt.Sprintf("m%d", id+1)
		config.Members = append(config.Members, &quoratepb.ObservedMember{Id: id + 1, Name: name, Voter: true, Started: true,
			Build: "1.0", Level: 3, PeerUrls: []string{"http://" + name + ":2380"},
			ClientUrls: []string{"http://" + name + ":2379"}})
	}
	for _, known := range config.Members {
		c.Members = append(c.Members, &quoratepb.CollectedMember{Id: known.Id, Name: known.Name, Endpoint: known.Name + ":2380",
			AskedMs: Now, RoundTripUs: 4000, Observation: observation(config, known)})
	}
	return c
}

func observation(config *quoratepb.ObservedConfig, of *quoratepb.ObservedMember) *quoratepb.Observation {
	o := &quoratepb.Observation{ClusterId: 9, MemberId: of.Id, Name: of.Name, Build: "1.0", NowMs: Now, UpMs: 3600_000,
		WindowMs: 60_000, HistoryMs: 600_000, HeartbeatMs: 100, ElectionMs: 1000, Config: proto.CloneOf(config),
		Core: &quoratepb.ObservedCore{Leader: 1, Term: 4, Commit: 90_000, Applied: 90_000, LastIndex: 90_000, Committed: 6000},
		Disk: &quoratepb.ObservedDisk{Syncs: 4000, SyncMeanUs: 2000, SyncP99Us: 9000, AvailableBytes: 50 << 30,
			ReserveBytes: 256 << 20},
		Store: &quoratepb.ObservedStore{Revision: 80_000, CompactRevision: 70_000, Keys: 5000, Versions: 12_000,
			SizeBytes:  10 << 20,
			QuotaBytes: 2 << 30, Pressure: 0.3, Applies: 3000, ApplyMeanUs: 200, ApplyP99Us: 2000},
		Work: &quoratepb.ObservedWork{Puts: 5800, PutBytes: 5800 * 200, MaxRequestBytes: 1536 << 10, Writes: 2400,
			WriteMeanUs: 4000,
			Leases:      900, LeaseBytes: 900 * 500, LeaseLimitBytes: 100 << 20, Watchers: 700, WatchLimitBytes: 256 << 20,
			WatchHostBytes: 64 << 20},
		Process: &quoratepb.ObservedProcess{MemoryLimitBytes: 4 << 30, MemoryBytes: 1 << 30, OpenFiles: 900,
			OpenFilesLimit: 65536,
			ProcessorUs:    72_000_000, Processors: 4,
			Parts: []*quoratepb.ObservedPart{{Name: "proposals", Bytes: 1 << 20, LimitBytes: 256 << 20}}},
		Certificates: []*quoratepb.ObservedCertificate{{Port: "peer", What: "certificate", FromMs: Now - 100*day,
			UntilMs: Now + 265*day}},
		Security: &quoratepb.ObservedSecurity{PeersEncrypted: true, PeersCertified: true, ClientsEncrypted: true,
			Users: true},
		Traffic: &quoratepb.ObservedTraffic{Writes: 2400, Reads: 6000},
	}
	for _, other := range config.Members {
		if other.Id == of.Id {
			continue
		}
		peer := &quoratepb.ObservedPeer{Id: other.Id, Connected: true, ConnectedMs: 3600_000, RoundTripUs: 900, Received: 900,
			Sent: 900}
		if of.Id == 1 {
			peer.Followed, peer.Active, peer.CaughtUp, peer.State, peer.Match, peer.Gained = true, true, true, "replicate",
				89_998, 6000
		}
		o.Peers = append(o.Peers, peer)
	}
	return o
}

// Of is what a member of a cluster of Healthy says, by its number from 1.
func Of(c *quoratepb.Collected, n int) *quoratepb.Observation { return c.Members[n-1].Observation }

// Lose takes a member away, as the one that collects and the leader see it.
func Lose(c *quoratepb.Collected, n int) {
	m := c.Members[n-1]
	m.Observation, m.Fault, m.FaultText = nil, "refused", "connection refused"
	for _, other := range c.Members {
		for _, p := range other.GetObservation().GetPeers() {
			if p.Id == uint64(n) {
				p.Connected, p.Active, p.Received, p.Fault, p.Failures = false, false, 0, "unreachable", 30
				if p.Followed {
					p.SilentMs = 65_000
				}
			}
		}
	}
}

// Unled lets no member know a leader, for 20 seconds.
func Unled(c *quoratepb.Collected) {
	for _, m := range c.Members {
		if o := m.Observation; o != nil {
			o.Core.Leader, o.Core.LeaderlessMs = 0, 20_000
			for _, p := range o.Peers {
				p.Followed = false
			}
		}
	}
}

// Described is the leader's view of a cluster of Healthy.
func Described(c *quoratepb.Collected) *quoratepb.DescribeResponse {
	cluster := &quoratepb.Cluster{ClusterId: 9, Config: &quoratepb.ConfigID{Index: 7, Term: 1}, Settled: true, Leader: 1,
		Term:      4,
		LastIndex: 90_000, Level: 3}
	for i, m := range c.Members[0].Observation.Config.Members {
		one := &quoratepb.Member{Id: m.Id, Name: m.Name, PeerUrls: m.PeerUrls, ClientUrls: m.ClientUrls,
			Role:   quoratepb.Role_ROLE_VOTER,
			Leader: i == 0, Started: true, Active: true, CaughtUp: true, Match: 90_000, Build: m.Build, Level: m.Level,
			State: "replicate",
			Zone:  m.Zone}
		cluster.Members = append(cluster.Members, one)
	}
	n := int32(len(cluster.Members))
	cluster.Strength = &quoratepb.Strength{Voters: n, Quorum: n/2 + 1, Superquorum: n - (n/2 + 1) + (n/2+1)/2 + 1, Active: n,
		Tolerates: n - (n/2 + 1)}
	return &quoratepb.DescribeResponse{Cluster: cluster}
}
