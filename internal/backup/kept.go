package backup

import (
	"encoding/json"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// KeptName names a note of what retention has removed: all segments that end at Floor or before, and bases before it but for
// those that are there.
type KeptName struct {
	Cluster consensus.ClusterID
	Floor   consensus.Index
	From    int64 // any moment since is kept, in milliseconds since 1970
	Time    int64 // milliseconds since 1970
	Hash    Hash
}

func (n *KeptName) String() string {
	return fmt.Sprintf(KeptPrefix+number+"/"+number+"-"+number+"-"+number+"-%v.json",
		uint64(n.Cluster), uint64(n.Floor), uint64(n.From), uint64(n.Time), n.Hash)
}

// ParseKept reads a KeptName.
func ParseKept(name string) (KeptName, error) {
	f, ok := parse(name, KeptPrefix, ".json", 3, false)
	floor, from, at := f.numbers[0], f.numbers[1], f.numbers[2]
	if !ok || !sensible(floor, from, at) {
		return KeptName{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	return KeptName{consensus.ClusterID(f.cluster), consensus.Index(floor), int64(from), int64(at), f.hash}, nil
}

// Kept is the content of a note. It says no more than the name, but for the rule and the member that removed.
type Kept struct {
	Version int             `json:"version"`
	Cluster Hex             `json:"cluster"`
	Member  Hex             `json:"member"`
	Floor   consensus.Index `json:"floor"`
	From    int64           `json:"from"` // milliseconds since 1970
	Time    int64           `json:"time"` // milliseconds since 1970
	Rule    string          `json:"rule"`
}

// Encode encodes a note and names it.
func (k *Kept) Encode() (KeptName, []byte) {
	k.Version = manifestVersion
	content, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return KeptName{consensus.ClusterID(k.Cluster), k.Floor, k.From, k.Time, HashOf(content)}, content
}

// DecodeKept reads a note that has a name.
func DecodeKept(name *KeptName, content []byte) (*Kept, error) {
	if len(content) > MaxKeptBytes || HashOf(content) != name.Hash {
		return nil, fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	var k Kept
	if err := json.Unmarshal(content, &k); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case k.Version > manifestVersion:
		return nil, fmt.Errorf("note of version %d: %w", k.Version, ErrLater)
	case k.Version < manifestVersion || consensus.ClusterID(k.Cluster) != name.Cluster || k.Floor != name.Floor ||
		k.From != name.From || k.Time != name.Time || len(k.Rule) > maxTextBytes:
		return nil, fmt.Errorf("%w: it says something else than its name", ErrDamaged)
	}
	return &k, nil
}

// MaxKeptBytes bounds a note of what was removed.
const MaxKeptBytes = 4 << 10
