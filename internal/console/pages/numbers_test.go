package pages_test

import (
	"html"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/pages"
	"github.com/quorate/quorate/internal/doctor"
)

// distort sets about one number in so many of a message to one that no member measures.
func distort(random *rand.Rand, m protoreflect.Message, oneIn int) {
	floats := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, -math.MaxFloat64}
	integers := []int64{-1, math.MinInt64, math.MaxInt64, 0, 1, 1 << 45, 1 << 62}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		at := fields.Get(i)
		number := integers[random.IntN(len(integers))]
		switch {
		case at.IsList() && at.Kind() == protoreflect.MessageKind:
			for k := range m.Get(at).List().Len() {
				distort(random, m.Get(at).List().Get(k).Message(), oneIn)
			}
		case at.IsList(), random.IntN(oneIn) > 0 && at.Kind() != protoreflect.MessageKind:
		case at.Kind() == protoreflect.MessageKind:
			if m.Has(at) {
				distort(random, m.Mutable(at).Message(), oneIn)
			}
		case at.Kind() == protoreflect.DoubleKind:
			m.Set(at, protoreflect.ValueOfFloat64(floats[random.IntN(len(floats))]))
		case at.Kind() == protoreflect.Int64Kind:
			m.Set(at, protoreflect.ValueOfInt64(number))
		case at.Kind() == protoreflect.Uint64Kind:
			m.Set(at, protoreflect.ValueOfUint64(uint64(number)))
		case at.Kind() == protoreflect.Uint32Kind:
			m.Set(at, protoreflect.ValueOfUint32(uint32(number)))
		}
	}
}

// noNumber is what no page may have in the place of a number.
var noNumber = regexp.MustCompile(`NaN|[+-]Inf|%!|.{0,80}[0-9]{19}|.{0,80}−[0-9]`)

// Ensure that whatever numbers members tell, each page that shows what they observe is shown, with numbers.
func TestAll_hostileNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	conn := answers()
	for round := range 4 {
		all := consoletest.Healthy(3)
		for i, m := range all.Members {
			m.Observation.Store.Stalls = uint64(round % 2)
			m.Observation.Traffic = &quoratepb.ObservedTraffic{Writes: 9, Offered: 7, OneTrip: 5, Puts: 500, PutP50Us: 900, PutP99Us: 3000,
				Reads: 500, ReadP50Us: 500, ReadP99Us: 2000, SplitWrites: 90, QueueUs: 10, NetworkUs: 900, SyncUs: 700, ApplyUs: 90}
			for n := range int64(3 + i) {
				m.Observation.Series = append(m.Observation.Series, &quoratepb.ObservedPoint{EndedMs: 10_000 * n, LastedMs: 10_000, Writes: 9, Reads: 8})
			}
		}
		for _, m := range all.Members {
			m.Observation.Limits = []*quoratepb.ObservedLimit{{Name: "batch", Refused: 3, UsedPercent: 95}}
			m.Observation.Audit = []*quoratepb.ObservedOutput{{Name: "a.log", Kind: "file", Required: true, Records: 9, Lost: 3, LateMs: 4000,
				DeadlineMs: 5000}}
			m.Observation.Encryption = &quoratepb.ObservedEncryption{Encrypted: true, Provider: "file", CreatedMs: consoletest.Now - 90_000,
				Keys: 2, Counted: true, Bytes: 900, FormerBytes: 80, PlainBytes: 7}
		}
		cluster := consoletest.Described(all)
		top := &quoratepb.TopAnswer{Members: []*quoratepb.TopOfMember{{Id: 1, Name: "m1", Answer: &quoratepb.TopAnswer{CoversMs: 9000, OneOf: 2,
			Prefixes: ranking(), Clients: ranking(), Watched: ranking(), Watching: ranking()}}}}
		distort(random, top.Members[0].Answer.ProtoReflect(), 1+round%4)
		top = doctor.Trimmed(top) // as the collector hands it on
		for _, m := range all.Members {
			distort(random, m.Observation.ProtoReflect(), 1+round%4)
		}
		all = doctor.Trimmed(all)
		conn[quoratepb.Doctor_Collect_FullMethodName], conn[quoratepb.Top_Get_FullMethodName] = all, top
		conn[quoratepb.Membership_Describe_FullMethodName] = proto.Message(cluster)
		for _, p := range pages.All() {
			switch p.Path {
			case "/", "/members", "/traffic", "/top", "/alarms", "/backups", "/changes/replace", "/limits", "/audit", "/encryption":
			default:
				continue
			}
			for _, query := range []string{"", "?member=2", "?by=watchers&of=clients"} {
				code, body := consoletest.Show(t, conn, p, p.Path+query)
				if at := noNumber.FindString(html.UnescapeString(body)); code != http.StatusOK || at != "" {
					t.Fatalf("round %d, %s%s: %d, %q", round, p.Path, query, code, at)
				}
			}
		}
	}
}

func ranking() *quoratepb.TopRanking {
	count := func(n uint64) *quoratepb.TopCounts {
		return &quoratepb.TopCounts{Operations: n, Bytes: n, ProcessorNs: n, Watchers: n}
	}
	return &quoratepb.TopRanking{Total: count(90), Floor: 3, Rows: []*quoratepb.TopRow{
		{Prefix: []byte("/a"), Operation: "put", Host: "10.0.0.1", Counts: count(50), Most: 60},
		{Prefix: []byte("/b"), Operation: "range", User: "u", Counts: count(30), Most: 40}}}
}
