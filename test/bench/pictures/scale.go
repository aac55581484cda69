package pictures

import "math"

// scale maps values to coordinates. A logarithmic one takes no values below its least one.
type scale struct {
	from, to    float64 // values
	begin, end  float64 // coordinates
	logarithmic bool
}

func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.logarithmic {
		v, from, to = math.Log(max(v, from)), math.Log(from), math.Log(to)
	}
	return s.begin + (min(v, to)-from)/(to-from)*(s.end-s.begin)
}

// steps are round numbers from zero up to the first that is not below most, four to eight of them.
func steps(most float64) (all []float64) {
	if most <= 0 || math.IsNaN(most) {
		most = 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	step := unit
	for _, part := range []float64{0.2, 0.25, 0.5, 1, 2} {
		if most/(unit*part) <= 7 {
			step = unit * part
			break
		}
	}
	for i := 0; ; i++ {
		v := float64(i) * step
		if all = append(all, v); v >= most {
			return all
		}
	}
}

// decades are one, two and five times the powers of ten around all values.
func decades(least, most float64) (all []float64) {
	for power := math.Floor(math.Log10(least)); power <= math.Ceil(math.Log10(most)); power++ {
		for _, part := range []float64{1, 2, 5} {
			v := part * math.Pow(10, power)
			if n := len(all); n == 0 || all[n-1] < most {
				all = append(all, v)
			}
		}
	}
	for len(all) > 2 && all[1] <= least {
		all = all[1:]
	}
	return all
}
