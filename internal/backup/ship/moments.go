package ship

import "github.com/quorate/quorate/internal/consensus"

// moments are the times of entries that came by while a base is made: the sums of its files are known long after its entry.
// Each is that of an entry and of those before it, up to a second, or later where there are many.
type moments struct {
	all   []moment
	every int64 // entries of so many milliseconds are one of all
}

type moment struct {
	index       consensus.Index // the last entry of them
	began, time int64           // of the first one, and of the last one
}

// mostMoments bounds the moments: twice as many are made half as many.
const mostMoments = 2048

// add takes the time of an entry, which is not before that of others.
func (m *moments) add(index consensus.Index, time int64) {
	if n := len(m.all); n > 0 && time-m.all[n-1].began < m.every {
		m.all[n-1].index, m.all[n-1].time = index, time
		return
	}
	if m.all = append(m.all, moment{index, time, time}); len(m.all) == mostMoments {
		for i := range m.all[:mostMoments/2] {
			m.all[i] = m.all[2*i+1]
			m.all[i].began = m.all[i].time
		}
		m.all, m.every = m.all[:mostMoments/2], 2*m.every
	}
}

// of returns the time of an entry, or one soon after it; false: it did not come by.
func (m *moments) of(index consensus.Index) (time int64, known bool) {
	for i := range m.all {
		if m.all[i].index >= index {
			return m.all[i].time, true
		}
	}
	return 0, false
}
