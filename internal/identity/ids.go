package identity

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/binary"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// MemberID is the id of a member that founds a cluster: a hash of its sorted peer URLs and the cluster's token, as in etcd.
func MemberID(peerURLs []string, token string) consensus.MemberID {
	return consensus.MemberID(shortSum([]byte(strings.Join(peerURLs, "") + token)))
}

// ClusterID is the id of a cluster: a hash of the sorted ids of the members that found it, as in etcd. contents, if there are
// any, are those that it begins with: members that begin with different ones are of different clusters, and never meet.
func ClusterID(members []consensus.MemberID, contents []byte) consensus.ClusterID {
	var b []byte
	for _, id := range members {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
	return consensus.ClusterID(shortSum(append(b, contents...)))
}

// shortSum is the first eight bytes of a SHA-1. It names members and protects nothing, so it may be computed where
// GODEBUG=fips140=only forbids SHA-1 to whatever protects something.
func shortSum(content []byte) (short uint64) {
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum(content)
		short = binary.BigEndian.Uint64(sum[:])
	})
	return short
}
