package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// ErrName means that a name is none of a backup's objects.
var ErrName = errors.New("backup: not a name of a backup's object")

// Prefixes of names.
const (
	FilePrefix = "obj/"
	BasePrefix = "base/"
	LogPrefix  = "log/"
	GapPrefix  = "gap/"
	KeptPrefix = "kept/"
)

// Hash is the SHA-256 of an object, encrypted or not.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashOf returns the hash of a content.
func HashOf(content []byte) Hash { return sha256.Sum256(content) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	read, ok := parseHash(string(text))
	if !ok {
		return fmt.Errorf("%w: hash %q", ErrDamaged, excerpt(text))
	}
	*h = read
	return nil
}

// Point is a state of a cluster: all entries up to Index were applied, and Sum is the chain's over them.
type Point struct {
	Index consensus.Index
	Sum   uint64
}

// PointName names a state in command lines: History.
func PointName(p Point) string { return fmt.Sprintf("%d:%016x", p.Index, p.Sum) }

// ParsePoint reads a PointName.
func ParsePoint(word string) (Point, error) {
	index, sum, found := strings.Cut(word, ":")
	n, err := strconv.ParseUint(index, 10, 62)
	s, ok := parseNumber(sum)
	if !found || err != nil || !ok || n == 0 {
		return Point{}, fmt.Errorf("%q: write ENTRY:SUM, as the refusal or `quorate backup list` does", word)
	}
	return Point{consensus.Index(n), s}, nil
}

// Moment is when a state was: the store's revision, and the wall time in milliseconds since 1970 of the last entry, by the
// clock of the member that shipped it. Along a chain neither falls.
type Moment struct {
	Revision kv.Revision
	Time     int64
}

// Set tells sets of recipients apart, in names. Zero: nothing is encrypted.
type Set uint32

// BaseName names a manifest.
type BaseName struct {
	Cluster consensus.ClusterID
	Epoch   uint64 // of the cluster: a recovery that may have lost entries begins another one
	Point          // its sum is a label (Secret.Label) if Set is not zero
	Moment
	Set  Set // of recipients that the object is encrypted to; zero: none
	Hash Hash
}

// SegmentName names a segment: the entries First to End.Index.
type SegmentName struct {
	Cluster consensus.ClusterID
	Epoch   uint64 // see BaseName
	First   consensus.Index
	Before  uint64 // the chain's sum before the first entry, or a label
	End     Point  // see BaseName
	Moment         // of the last entry
	Set     Set    // see BaseName
	Hash    Hash
}

// GapName names a note of entries that are lost to the backup: those after After and before Until.
type GapName struct {
	Cluster      consensus.ClusterID
	After, Until consensus.Index
	Time         int64 // milliseconds since 1970
	Sealed       bool  // it is encrypted
	Hash         Hash
}

const number = "%016x"

// FileName names a file of a checkpoint of a cluster.
func FileName(cluster consensus.ClusterID, h Hash) string {
	return fmt.Sprintf(FilePrefix+number+"/%v", uint64(cluster), h)
}

// ParseFile reads a FileName.
func ParseFile(name string) (consensus.ClusterID, Hash, error) {
	f, ok := parse(name, FilePrefix, "", 0, false)
	if !ok {
		return 0, Hash{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	return consensus.ClusterID(f.cluster), f.hash, nil
}

// Names of encrypted objects have the set of the recipients before the hash, and end otherwise.
const (
	baseSuffix       = ".json"
	baseSealedSuffix = ".seal.json"
	logSuffix        = ".ql"
	gapSuffix        = ".json"
	sealedSuffix     = ".seal"
)

// ending is the end of a name: what comes after its numbers.
func ending(set Set, hash Hash, plain, sealed string) string {
	if set == 0 {
		return fmt.Sprintf("-%v%s", hash, plain)
	}
	return fmt.Sprintf("-%08x-%v%s", uint32(set), hash, sealed)
}

func (n *BaseName) String() string {
	return fmt.Sprintf(BasePrefix+number+"/"+number+"-"+number+"-"+number+"-"+number+"-"+number,
		uint64(n.Cluster), n.Epoch, uint64(n.Index), n.Sum, uint64(n.Revision), uint64(n.Time)) +
		ending(n.Set, n.Hash, baseSuffix, baseSealedSuffix)
}

func (n *SegmentName) String() string {
	return fmt.Sprintf(LogPrefix+number+"/"+number+"-"+number+"-"+number+"-"+number+"-"+number+"-"+number+"-"+number,
		uint64(n.Cluster), n.Epoch, uint64(n.First), uint64(n.End.Index), n.Before, n.End.Sum, uint64(n.Revision),
		uint64(n.Time)) + ending(n.Set, n.Hash, logSuffix, sealedSuffix)
}

func (n *GapName) String() string {
	suffix := gapSuffix
	if n.Sealed {
		suffix = sealedSuffix
	}
	return fmt.Sprintf(GapPrefix+number+"/"+number+"-"+number+"-"+number+"-%v%s",
		uint64(n.Cluster), uint64(n.After), uint64(n.Until), uint64(n.Time), n.Hash, suffix)
}

// Start is the point before the first entry.
func (n *SegmentName) Start() Point { return Point{n.First - 1, n.Before} }

// fields are the numbers and the hash of a name.
type fields struct {
	cluster uint64
	numbers [7]uint64
	set     Set
	hash    Hash
}

// parse reads a name of PREFIX CLUSTER/NUMBER-…-HASH SUFFIX with so many numbers; with a set of recipients before HASH if set
// is true.
func parse(name, prefix, suffix string, count int, set bool) (f fields, ok bool) {
	rest, found := strings.CutPrefix(name, prefix)
	rest, ends := strings.CutSuffix(rest, suffix)
	cluster, rest, parts := strings.Cut(rest, "/")
	if !found || !ends || !parts {
		return f, false
	}
	if f.cluster, ok = parseNumber(cluster); !ok {
		return f, false
	}
	for i := range count {
		var word string
		if word, rest, ok = strings.Cut(rest, "-"); !ok {
			return f, false
		}
		if f.numbers[i], ok = parseNumber(word); !ok {
			return f, false
		}
	}
	if set {
		var word string
		if word, rest, ok = strings.Cut(rest, "-"); !ok {
			return f, false
		}
		n, ok := parseNumber("00000000" + word)
		if f.set = Set(n); !ok || n == 0 || len(word) != 8 {
			return f, false
		}
	}
	f.hash, ok = parseHash(rest)
	return f, ok
}

// either reads a name in the clear or one of an encrypted object.
func either(name, prefix, plain, sealed string, count int) (fields, bool) {
	if strings.HasSuffix(name, sealed) {
		return parse(name, prefix, sealed, count, true)
	}
	return parse(name, prefix, plain, count, false)
}

// parseNumber reads sixteen digits, in the one way that they are written.
func parseNumber(word string) (uint64, bool) {
	if len(word) != 16 || strings.ToLower(word) != word || word[0] == '+' || word[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(word, 16, 64)
	return n, err == nil
}

func parseHash(word string) (h Hash, ok bool) {
	if len(word) != 2*len(h) || strings.ToLower(word) != word {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(word))
	return h, err == nil
}

// maxNumber bounds indexes, revisions and times in names, so that sums of them are numbers.
const maxNumber = 1 << 62

func sensible(numbers ...uint64) bool {
	for _, n := range numbers {
		if n > maxNumber {
			return false
		}
	}
	return true
}

// ParseBase reads a BaseName.
func ParseBase(name string) (BaseName, error) {
	f, ok := either(name, BasePrefix, baseSuffix, baseSealedSuffix, 5)
	epoch, index, sum, revision, at := f.numbers[0], f.numbers[1], f.numbers[2], f.numbers[3], f.numbers[4]
	if !ok || !sensible(epoch, index, revision, at) {
		return BaseName{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	return BaseName{consensus.ClusterID(f.cluster), epoch, Point{consensus.Index(index), sum},
		Moment{kv.Revision(revision), int64(at)}, f.set, f.hash}, nil
}

// ParseSegment reads a SegmentName.
func ParseSegment(name string) (SegmentName, error) {
	f, ok := either(name, LogPrefix, logSuffix, sealedSuffix, 7)
	epoch, first, last, before, after := f.numbers[0], f.numbers[1], f.numbers[2], f.numbers[3], f.numbers[4]
	revision, at := f.numbers[5], f.numbers[6]
	if !ok || !sensible(epoch, first, last, revision, at) || first == 0 || last < first || last-first >= MaxItems {
		return SegmentName{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	return SegmentName{consensus.ClusterID(f.cluster), epoch, consensus.Index(first), before,
		Point{consensus.Index(last), after}, Moment{kv.Revision(revision), int64(at)}, f.set, f.hash}, nil
}

// ParseGap reads a GapName.
func ParseGap(name string) (GapName, error) {
	sealed := strings.HasSuffix(name, sealedSuffix)
	suffix := gapSuffix
	if sealed {
		suffix = sealedSuffix
	}
	f, ok := parse(name, GapPrefix, suffix, 3, false)
	after, until, at := f.numbers[0], f.numbers[1], f.numbers[2]
	if !ok || !sensible(after, until, at) || until < after {
		return GapName{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	return GapName{consensus.ClusterID(f.cluster), consensus.Index(after), consensus.Index(until), int64(at),
		sealed, f.hash}, nil
}
