package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const maxElectionTimeout = 50 * time.Second

// Validate reports everything that is wrong with the configuration, or nil.
func (c *Config) Validate() error {
	return append(c.faults(), c.bootstrapFaults()...).err()
}

// ValidateBootstrap reports what is wrong with the settings that bootstrap a cluster. Only a member that starts with an
// empty data directory reads them, and must call this first.
func (c *Config) ValidateBootstrap() error { return c.bootstrapFaults().err() }

// faults collects all faults but those of the bootstrap settings.
func (c *Config) faults() Faults {
	var faults Faults
	faults = append(faults, c.nameFaults()...)
	faults = append(faults, c.listenFaults()...)
	faults = append(faults, c.consoleFaults()...)
	faults = append(faults, c.auditFaults()...)
	faults = append(faults, c.advertiseFaults()...)
	faults = append(faults, c.tlsFaults()...)
	faults = append(faults, c.timingFaults()...)
	faults = append(faults, c.careFaults()...)
	faults = append(faults, c.delayFaults()...)
	faults = append(faults, c.encryptionFaults()...)
	return append(faults, c.serviceFaults()...)
}

func (c *Config) nameFaults() Faults {
	var faults Faults
	if c.Name == "" {
		faults = append(faults, "--name must not be empty")
	}
	if err := CheckName(c.Name); err != nil {
		faults = append(faults, "--name "+err.Error())
	}
	if c.Storage.WALDir != "" && filepath.Clean(c.Storage.WALDir) == filepath.Clean(c.Storage.DataDir) {
		faults = append(faults, "--wal-dir and --data-dir must be different directories")
	}
	return faults
}

type urlList struct {
	flag string
	urls []URL
}

func (c *Config) listenLists() []urlList {
	return []urlList{
		{"--listen-peer-urls", c.Listen.PeerURLs},
		{"--listen-client-urls", c.Listen.ClientURLs},
		{"--listen-client-http-urls", c.Listen.ClientHTTPURLs},
		{"--listen-metrics-urls", c.Listen.MetricsURLs},
		{"--listen-console-urls", c.Listen.ConsoleURLs},
	}
}

func (c *Config) listenFaults() Faults {
	var faults Faults
	lists := c.listenLists()
	for _, l := range lists[:2] {
		if len(l.urls) == 0 {
			faults = append(faults, l.flag+" must name at least one URL")
		}
	}
	var seen []urlList // one URL each
	for _, l := range lists {
		faults = append(faults, urlFaults(l)...)
		for _, u := range l.urls {
			if host := u.host(); u.Network() == "tcp" && net.ParseIP(host) == nil && host != "localhost" {
				faults = append(faults, fmt.Sprintf("%s %s must name an IP address or localhost: use http://0.0.0.0:%s "+
					"to listen on all addresses", l.flag, u, u.port()))
			}
			for _, other := range seen {
				twin := other.flag == l.flag && other.urls[0].Scheme != u.Scheme
				same := other.flag == l.flag && other.urls[0] == u // reported as a repetition already
				if u.clashes(other.urls[0]) && !twin && !same {
					faults = append(faults, fmt.Sprintf("%s %s and %s %s are the same address", other.flag,
						other.urls[0], l.flag, u))
				}
			}
			seen = append(seen, urlList{l.flag, []URL{u}})
		}
	}
	return faults
}

// urlFaults reports what is wrong with any list of URLs: repetitions.
func urlFaults(l urlList) Faults {
	var faults Faults
	for i, u := range l.urls {
		if slices.Contains(l.urls[:i], u) {
			faults = append(faults, fmt.Sprintf("%s names %s twice", l.flag, u))
		}
	}
	return faults
}

func (c *Config) advertiseFaults() Faults {
	var faults Faults
	if len(c.Advertise.PeerURLs) == 0 {
		faults = append(faults, "--initial-advertise-peer-urls must name at least one URL")
	}
	if len(c.Advertise.ClientURLs) == 0 && len(c.Listen.ClientURLs) > 0 {
		faults = append(faults, "--advertise-client-urls is required when --listen-client-urls listens on all addresses")
	}
	for _, l := range []urlList{
		{"--initial-advertise-peer-urls", c.Advertise.PeerURLs},
		{"--advertise-client-urls", c.Advertise.ClientURLs},
	} {
		faults = append(faults, urlFaults(l)...)
		for _, u := range l.urls {
			if u.Network() == "tcp" && u.host() == "" {
				faults = append(faults, fmt.Sprintf("%s %s lacks a host", l.flag, u))
			}
		}
	}
	return faults
}

// commitDelay is the default of --commit-delay, which does not get in the way of short heartbeats.
const commitDelay = 4 * time.Millisecond

func (c *Config) timingFaults() Faults {
	var faults Faults
	heartbeat, election := c.Consensus.HeartbeatInterval, c.Consensus.ElectionTimeout
	if heartbeat <= 0 {
		faults = append(faults, "--heartbeat-interval must be more than 0")
	}
	switch {
	case election <= 0:
		faults = append(faults, "--election-timeout must be more than 0")
	case 5*heartbeat > election:
		faults = append(faults, fmt.Sprintf("--election-timeout (%v) must be at least 5 times --heartbeat-interval (%v)",
			election, heartbeat))
	case election > maxElectionTimeout:
		faults = append(faults, fmt.Sprintf("--election-timeout (%v) must be at most %v", election, maxElectionTimeout))
	}
	if delay := c.Consensus.CommitDelay; delay > max(heartbeat, commitDelay) {
		faults = append(faults, fmt.Sprintf("--commit-delay (%v) must be at most --heartbeat-interval (%v); %v is always "+
			"allowed", delay, heartbeat, commitDelay))
	}
	if c.Storage.CompactHashCheckTime <= 0 {
		faults = append(faults, "--compact-hash-check-time must be more than 0")
	}
	return faults
}

func (c *Config) serviceFaults() Faults {
	var faults Faults
	if _, err := c.AutoCompaction(); err != nil {
		faults = append(faults, fmt.Sprintf("--auto-compaction-retention %q %v", c.Compaction.Retention, err))
	}
	if _, err := c.JWT(); err != nil {
		faults = append(faults, fmt.Sprintf("--auth-token: %v", err))
	}
	if c.FeatureGates.Enabled("LeaseCheckpointPersist") && !c.FeatureGates.Enabled("LeaseCheckpoint") {
		faults = append(faults, "--feature-gates: LeaseCheckpointPersist needs LeaseCheckpoint")
	}
	if _, err := c.LogRotation(); err != nil {
		faults = append(faults, err.Error())
	}
	if len(c.Monitoring.LogOutputs) == 0 {
		faults = append(faults, "--log-outputs must name at least one output")
	}
	for _, output := range c.Monitoring.LogOutputs {
		switch {
		case output == "default" && len(c.Monitoring.LogOutputs) > 1:
			faults = append(faults, "--log-outputs: 'default' cannot be combined with other outputs")
		}
	}
	return faults
}

// bootstrapFaults checks what a new member is to be. A member that has its data is not kept from starting by an advertised URL:
// it says itself that no other member reaches it there.
func (c *Config) bootstrapFaults() Faults {
	var faults Faults
	for _, peer := range c.Advertise.PeerURLs {
		for _, client := range c.Advertise.ClientURLs {
			told := len(c.listenFaults()) > 0 // what is advertised may follow from where a member listens
			if peer.clashes(client) && !peer.wildcard() && !client.wildcard() && !told {
				faults = append(faults, fmt.Sprintf("--initial-advertise-peer-urls %s and --advertise-client-urls %s are the "+
					"same address", peer, client))
			}
		}
	}
	return append(faults, c.clusterFaults()...)
}

// clusterFaults checks the initial configuration: every member is named once, every URL is used once, and this member is in it
// with the URLs that it advertises.
func (c *Config) clusterFaults() Faults {
	if len(c.Bootstrap.Join) > 0 && !c.foundsOrJoins() {
		return c.joinFaults()
	}
	if c.Bootstrap.Discovery.used() {
		return c.discoveryFaults()
	}
	if c.Bootstrap.DNS.used() {
		return c.dnsFaults()
	}
	faults := c.withoutJoinFaults()
	for i := range c.Bootstrap.InitialCluster {
		m := &c.Bootstrap.InitialCluster[i]
		if err := CheckName(m.Name); err != nil && m.Name != c.Name {
			faults = append(faults, "--initial-cluster: name "+err.Error())
		}
	}
	owner := map[URL]string{}
	for _, m := range c.Bootstrap.InitialCluster {
		for _, u := range m.PeerURLs {
			switch other, taken := owner[u]; {
			case taken && other == m.Name:
				faults = append(faults, fmt.Sprintf("--initial-cluster gives %s to %s twice", u, m.Name))
			case taken:
				faults = append(faults, fmt.Sprintf("--initial-cluster gives %s to both %s and %s", u, other, m.Name))
			}
			owner[u] = m.Name
		}
	}
	at := memberIndex(c.Bootstrap.InitialCluster, c.Name)
	if at < 0 {
		return append(faults, fmt.Sprintf("--initial-cluster does not name this member: add %s=%s, or set --name to "+
			"one of %s", c.Name, joinURLs(c.Advertise.PeerURLs), memberNames(c.Bootstrap.InitialCluster)))
	}
	if !sameURLs(c.Bootstrap.InitialCluster[at].PeerURLs, c.Advertise.PeerURLs) {
		faults = append(faults, fmt.Sprintf("--initial-cluster has %s for %s, but --initial-advertise-peer-urls is %s",
			joinURLs(c.Bootstrap.InitialCluster[at].PeerURLs), c.Name, joinURLs(c.Advertise.PeerURLs)))
	}
	return faults
}

func (d *Discovery) used() bool { return d.Token != "" || len(d.Endpoints) > 0 }

// Discovers tells whether the members of the new cluster find each other by package discovery.
func (c *Config) Discovers() bool {
	return c.Bootstrap.Discovery.used() && len(c.Bootstrap.Join) == 0 && c.NewCluster()
}

// discoveryFaults checks the settings of a member that is to find the others.
func (c *Config) discoveryFaults() Faults {
	var faults Faults
	d := &c.Bootstrap.Discovery
	if d.Token == "" || len(d.Endpoints) == 0 {
		faults = append(faults, "--discovery-token and --discovery-endpoints need each other")
	}
	if strings.Contains(d.Token, "/") {
		faults = append(faults, "--discovery-token must not contain a slash")
	}
	if c.Explicit("initial-cluster") {
		faults = append(faults, "--discovery-token and --initial-cluster exclude each other: drop one")
	}
	if c.Bootstrap.DNS.used() {
		faults = append(faults, "--discovery-token and --discovery-srv exclude each other: drop one")
	}
	if (d.CertFile == "") != (d.KeyFile == "") {
		faults = append(faults, "--discovery-cert and --discovery-key need each other")
	}
	if d.Password != "" && d.User == "" {
		faults = append(faults, "--discovery-password needs --discovery-user")
	}
	return faults
}

func (d *DNS) used() bool { return d.Domain != "" || d.Service != "" }

// dnsFaults checks the settings of a member that finds the others in DNS.
func (c *Config) dnsFaults() Faults {
	var faults Faults
	if c.Bootstrap.DNS.Domain == "" {
		faults = append(faults, "--discovery-srv-name needs --discovery-srv")
	}
	if c.Explicit("initial-cluster") {
		faults = append(faults, "--discovery-srv and --initial-cluster exclude each other: drop one")
	}
	return faults
}

// joinFaults checks the settings of a member that joins by --join.
func (c *Config) joinFaults() Faults {
	var faults Faults
	if len(c.Bootstrap.InitialCluster) > 0 {
		faults = append(faults,
			"--join and --initial-cluster exclude each other: with --join the cluster itself says who its "+
				"members are; drop --initial-cluster, or add --initial-cluster-state=new if the members that "+
				"--initial-cluster names are to found the cluster, and others to join it")
	}
	if c.Bootstrap.ClusterState == ClusterNew {
		faults = append(faults, "--join and --initial-cluster-state=new exclude each other without --initial-cluster: drop "+
			"--join to found a cluster")
	}
	if c.Bootstrap.Discovery.used() {
		faults = append(faults, "--join and --discovery-token exclude each other: drop one")
	}
	if c.Bootstrap.DNS.used() {
		faults = append(faults, "--join and --discovery-srv exclude each other: drop one")
	}
	if len(c.JoinURLs()) == 0 {
		faults = append(faults, fmt.Sprintf("--join %s names only this member itself: name one that runs",
			joinURLs(c.Bootstrap.Join)))
	}
	if c.Bootstrap.JoinLearner && c.Bootstrap.Replaces != "" {
		faults = append(faults,
			"--join-learner and --replaces exclude each other: who replaces a member votes if that one did")
	}
	return faults
}

// withoutJoinFaults checks that no setting of a member that joins is set where none does.
func (c *Config) withoutJoinFaults() Faults {
	var faults Faults
	if len(c.Bootstrap.Join) > 0 {
		return nil
	}
	if c.Bootstrap.JoinLearner {
		faults = append(faults, "--join-learner needs --join")
	}
	if c.Bootstrap.Replaces != "" {
		faults = append(faults, "--replaces needs --join")
	}
	if c.Bootstrap.JoinToken != "" {
		faults = append(faults, "--join-token needs --join")
	}
	return faults
}

func memberNames(members []InitialMember) string {
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// sameURLs compares two lists regardless of order. A host name and an IP address with equal ports are taken for the
// same place: only a resolver could tell, and validation asks none.
func sameURLs(a, b []URL) bool {
	if len(a) != len(b) {
		return false
	}
	left := slices.Clone(b)
	for _, u := range a {
		at := slices.IndexFunc(left, func(v URL) bool { return u == v })
		if at < 0 {
			at = slices.IndexFunc(left, func(v URL) bool { return samePlace(u, v) })
		}
		if at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	return true
}

func samePlace(u, v URL) bool {
	if u.Scheme != v.Scheme || u.Network() != "tcp" || u.port() != v.port() {
		return false
	}
	uIP, vIP := net.ParseIP(u.host()), net.ParseIP(v.host())
	switch {
	case uIP != nil && vIP != nil:
		return uIP.Equal(vIP)
	case uIP == nil && vIP == nil:
		return strings.EqualFold(u.host(), v.host())
	default:
		return true
	}
}
