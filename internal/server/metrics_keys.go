package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/monotime"
)

// keyPause is how long what was counted is shown: to count reads the first bytes of all files, and anybody may ask for metrics.
const keyPause = time.Minute

var (
	keyBytesDesc = prometheus.NewDesc("quorate_encryption_bytes",
		"Length of the files of the data directory that are encrypted with a data key, counted once a minute at most.",
		[]string{"key"}, nil)
	keyCreatedDesc = prometheus.NewDesc("quorate_encryption_key_created_timestamp_seconds",
		"When the data key was made that new files have.", nil, nil)
	plainBytesDesc = prometheus.NewDesc("quorate_encryption_plain_bytes",
		"Length of the files of an encrypted data directory that are not encrypted: 0, unless somebody put them there.",
		nil, nil)
)

// keyMetrics show which keys the files of an encrypted data directory have.
type keyMetrics struct {
	count func() (*quoratepb.EncryptionStatus, error)
	spawn func(func()) // runs a count in the background

	mu      sync.Mutex // held while files are counted
	counted time.Time
	last    atomic.Pointer[quoratepb.EncryptionStatus] // of the last count; nil: it failed, or there was none
	busy    atomic.Bool                                // a count runs in the background
	begun   monotime.Atomic                            // when the last one of these began
}

// Describe implements prometheus.Collector.
func (*keyMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- keyBytesDesc
	ch <- keyCreatedDesc
	ch <- plainBytesDesc
}

// Collect implements prometheus.Collector. It shows nothing if the files cannot be counted.
func (m *keyMetrics) Collect(ch chan<- prometheus.Metric) {
	status := m.status(time.Now())
	if status == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, key := range status.GetKeys() {
		if key.GetBytes() > 0 || key.GetActive() {
			gauge(keyBytesDesc, key.GetBytes(), key.GetId())
		}
		if key.GetActive() {
			gauge(keyCreatedDesc, key.GetCreatedSeconds())
		}
	}
	gauge(plainBytesDesc, status.GetPlainBytes())
}

func (m *keyMetrics) status(now time.Time) *quoratepb.EncryptionStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counted.IsZero() || now.Sub(m.counted) >= keyPause {
		m.counted = now
		status, _ := m.count() // a file that cannot be read is another's finding
		m.last.Store(status)
	}
	return m.last.Load()
}

// latest returns what was counted last, and has it counted anew in the background if that is too long ago: it waits for no
// disk. Nil: nothing was counted yet.
func (m *keyMetrics) latest(now time.Time) *quoratepb.EncryptionStatus {
	if m.begun.Advance(now, keyPause) && m.busy.CompareAndSwap(false, true) {
		m.spawn(func() {
			defer m.busy.Store(false)
			m.status(now)
		})
	}
	return m.last.Load()
}
