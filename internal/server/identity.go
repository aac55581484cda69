package server

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
)

// founding is what the members of a new cluster derive, each alone and all the same, from --initial-cluster.
type founding struct {
	cluster consensus.ClusterID
	self    consensus.MemberID
	config  consensus.Config
}

// found computes member and cluster ids as etcd does, so that ids seen in scripts and dashboards stay familiar: the
// first eight bytes of SHA-1 over the sorted peer URLs and the token, and over the sorted member ids.
func found(cfg *config.Config) (founding, error) {
	var f founding
	for _, m := range cfg.InitialCluster {
		member := consensus.Member{Name: m.Name, PeerURLs: urlTexts(m.PeerURLs)}
		member.ID = memberID(member.PeerURLs, cfg.ClusterToken)
		if m.Name == cfg.Name {
			f.self = member.ID
		}
		f.config.Members = append(f.config.Members, member)
	}
	slices.SortFunc(f.config.Members, func(a, b consensus.Member) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	hash := sha1.New()
	for i, m := range f.config.Members {
		if i > 0 && f.config.Members[i-1].ID == m.ID {
			return f, fmt.Errorf("--initial-cluster names the same peer URLs twice, as %s and %s",
				f.config.Members[i-1].Name, m.Name)
		}
		f.config.Voters = append(f.config.Voters, m.ID)
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(m.ID)))
	}
	f.cluster = consensus.ClusterID(binary.BigEndian.Uint64(hash.Sum(nil)))
	if f.self == consensus.NoMember {
		return f, fmt.Errorf("--initial-cluster does not name this member, %q", cfg.Name)
	}
	return f, nil
}

func memberID(peerURLs []string, token string) consensus.MemberID {
	hash := sha1.New()
	for _, u := range peerURLs {
		hash.Write([]byte(u))
	}
	hash.Write([]byte(token))
	return consensus.MemberID(binary.BigEndian.Uint64(hash.Sum(nil)))
}

func urlTexts(urls []config.URL) []string {
	texts := make([]string, len(urls))
	for i, u := range urls {
		texts[i] = u.String()
	}
	slices.Sort(texts)
	return texts
}
