package config

import (
	"fmt"
	"slices"
	"strings"
)

// Founding says which members must answer before a new cluster starts.
type Founding string

// The values of --founding.
const (
	FoundingAll      Founding = "all"
	FoundingMajority Founding = "majority"
)

// ClusterState says whether the first start of a member bootstraps a new cluster or joins an existing one.
type ClusterState string

// The states a first start may declare.
const (
	ClusterNew      ClusterState = "new"
	ClusterExisting ClusterState = "existing"
)

// InitialMember is one member of the initial configuration.
type InitialMember struct {
	Name     string
	PeerURLs []URL
}

// JoinURLs are the URLs of --join without those of this member itself, so that all members may share one list.
func (c *Config) JoinURLs() []URL {
	return slices.DeleteFunc(slices.Clone(c.Bootstrap.Join),
		func(u URL) bool { return slices.Contains(c.Advertise.PeerURLs, u) })
}

// foundsOrJoins tells whether the flags are those of all members of a set, such as a StatefulSet: the members that
// --initial-cluster names found the cluster, and any other one joins it. A founder that was removed since joins it, too.
func (c *Config) foundsOrJoins() bool {
	return len(c.Bootstrap.Join) > 0 && c.Explicit("initial-cluster") && len(c.Bootstrap.InitialCluster) > 0 &&
		c.Explicit("initial-cluster-state") && c.NewCluster()
}

// AloneByDefault tells whether a first start would found a cluster of one because no flag says of what cluster this member is,
// although others can reach its peer URLs. Units often lose --initial-cluster or --join once the data exists; so after the loss
// of the disk they say the same.
func (c *Config) AloneByDefault() bool {
	return c.foundsUnsaid() && slices.ContainsFunc(c.Advertise.PeerURLs, func(u URL) bool { return !u.local() })
}

// foundsUnsaid tells whether a first start would found a cluster of one because no flag says of what cluster this member is.
func (c *Config) foundsUnsaid() bool {
	return c.NewCluster() && !c.Explicit("initial-cluster") && len(c.Bootstrap.Join) == 0 && !c.Bootstrap.Discovery.used() &&
		!c.Bootstrap.DNS.used()
}

// ParseInitialCluster reads "m1=http://a:2380,m2=http://b:2380"; a name may come several times, once for each URL.
// Members keep the order in which they are first named.
func ParseInitialCluster(text string) ([]InitialMember, error) {
	var members []InitialMember
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, address, found := strings.Cut(part, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not NAME=URL", part)
		}
		u, err := ParseURL(address)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", name, err)
		}
		at := memberIndex(members, name)
		if at < 0 {
			members = append(members, InitialMember{Name: name})
			at = len(members) - 1
		}
		members[at].PeerURLs = append(members[at].PeerURLs, u)
	}
	return members, nil
}

func memberIndex(members []InitialMember, name string) int {
	for i := range members {
		if members[i].Name == name {
			return i
		}
	}
	return -1
}

func FormatInitialCluster(members []InitialMember) string {
	var parts []string
	for _, m := range members {
		for _, u := range m.PeerURLs {
			parts = append(parts, m.Name+"="+u.String())
		}
	}
	return strings.Join(parts, ",")
}
