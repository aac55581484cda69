package doctor_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/internal/doctor"
)

// hostile is a number that no member measures, for a field.
func hostile(random *rand.Rand, kind protoreflect.Kind) protoreflect.Value {
	floats := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -math.MaxFloat64, math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.Copysign(0, -1), 1e17}
	integers := []int64{-1, math.MinInt64, math.MaxInt64, math.MinInt64 + 1, 0, 1, 1 << 31, 1 << 45, 1 << 62}
	draw := integers[random.IntN(len(integers))]
	switch kind {
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(floats[random.IntN(len(floats))])
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(draw)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(draw))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(draw))
	}
	return protoreflect.Value{}
}

// noNumber is what no sentence may have: no number, a negative one, one that no machine has, or a verb without its value. Dates,
// names and flags have other signs before their digits.
var noNumber = regexp.MustCompile(`NaN|Inf|%!|(^|[ (])-[0-9]|[0-9]{18}`)

// Ensure that whatever numbers members tell, all of them or a few, the verdict has none that is no number, and comes.
func TestJudge_hostileNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	codes := map[doctor.Code]bool{}
	for round := range 1500 {
		h := hospital{healthy(3)}
		many := []int{1, 2, 5, 20, 400}[round%5]
		var numbers []leaf
		for _, l := range leaves("", h.ProtoReflect()) {
			name := string(l.at.Name())
			identifies := name == "id" || name == "member_id" || name == "cluster_id" || name == "leader" || name == "by_member"
			if hostile(random, l.at.Kind()).IsValid() && !(identifies && many > 2) {
				numbers = append(numbers, l)
			}
		}
		h.of(1 + round%3).Store.Stalls = 3 // so that the pressure is told
		for range many {
			l := numbers[random.IntN(len(numbers))]
			l.in.Set(l.at, hostile(random, l.at.Kind()))
		}
		if round%3 == 0 {
			h.of(1 + random.IntN(3)).Store.Pressure = hostile(random, protoreflect.DoubleKind).Float()
		}
		for _, f := range doctor.Judge(h.Collected) {
			codes[f.Code] = true
			if at := noNumber.FindString(f.Sentence + " → " + f.Cure); at != "" {
				t.Fatalf("round %d: %q in %s: %s → %s", round, at, f.Code, f.Sentence, f.Cure)
			}
		}
	}
	if len(codes) < 22 {
		t.Errorf("%d codes were found", len(codes))
	}
}
