package k8s

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"
)

const (
	leaseBytes = 500
	eventBytes = 1024
	headBytes  = 16 // of a value: when its write was sent, and a number that no other value has
	textBytes  = 4 << 20
)

// resource is a kind of object: a prefix that is watched.
type resource int

const (
	leases resource = iota
	pods
	events
	resources
)

var prefixes = [resources]string{"/registry/leases/kube-node-lease/", "/registry/pods/", "/registry/events/"}

func (r resource) String() string { return [resources]string{"leases", "pods", "events"}[r] }

// key names an object. Names do not follow each other in the order of their creation.
func (r resource) key(number int) string {
	mixed := uint32(number) * 2654435761 // odd: no two numbers give the same
	switch r {
	case leases:
		return fmt.Sprintf("%snode-%06d", prefixes[r], number)
	case pods:
		return fmt.Sprintf("%sns-%02d/web-%08x", prefixes[r], mixed%50, mixed)
	default:
		return fmt.Sprintf("%sns-%02d/web-%08x.%016x", prefixes[r], mixed%50, mixed, number)
	}
}

// material is what objects are cut from: bytes drawn evenly, or fields of which names and half of the values recur.
type material struct {
	text  []byte
	value uint64 // the number of the last value
}

func newMaterial(random bool) *material {
	m := &material{text: make([]byte, 0, textBytes+64)}
	draw := rand.New(rand.NewPCG(2000, 7))
	if random {
		m.text = m.text[:textBytes]
		for i := 0; i < len(m.text); i += 8 {
			binary.LittleEndian.PutUint64(m.text[i:], draw.Uint64())
		}
		return m
	}
	for len(m.text) < textBytes {
		m.text = field(m.text, names[draw.IntN(len(names))])
		if draw.IntN(2) == 0 {
			m.text = field(m.text, names[draw.IntN(len(names))])
		} else {
			m.text = field(m.text, fmt.Sprintf("%016x%08x", draw.Uint64(), draw.Uint32())[:4+draw.IntN(20)])
		}
	}
	return m
}

// field appends a field of a message as protobuf encodes it.
func field(to []byte, text string) []byte {
	return append(append(to, 0x0a, byte(len(text))), text...)
}

var names = []string{
	"kubernetes.io/hostname", "app.kubernetes.io/name", "app.kubernetes.io/instance", "pod-template-hash", "ReplicaSet",
	"ContainersReady", "PodScheduled", "PodReadyToStartContainers", "Initialized", "IfNotPresent", "ClusterFirst", "Always",
	"default-scheduler", "kube-api-access", "/var/run/secrets/kubernetes.io/serviceaccount", "kube-root-ca.crt", "ca.crt",
	"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "NoExecute", "registry.example.com/web/frontend:v1.2.3",
	"metadata.namespace", "/dev/termination-log", "File", "BestEffort", "Running", "containerd://", "10.244.0.0", "v1",
	"f:metadata", "f:spec", "f:status", "f:containers", "f:resources", "f:env", "k:{\"name\":\"web\"}", "FieldsV1", "Update",
	"kube-controller-manager", "kubelet", "PreemptLowerPriority", "service-account-token", "requests", "limits", "memory",
}

// object returns the next value of an object: most of it is the object's own, the last seventh is new each time.
func (m *material) object(number, size int) []byte {
	m.value++
	value := make([]byte, size)
	tail := size - size/7
	copy(value[:tail], m.slice(uint64(number)+1, tail))
	copy(value[tail:], m.slice(m.value+1<<32, size-tail))
	binary.BigEndian.PutUint64(value[8:], m.value)
	return value
}

func (m *material) slice(seed uint64, size int) []byte {
	at := int(seed * 0x9e3779b97f4a7c15 >> 33 % uint64(len(m.text)-size))
	return m.text[at : at+size]
}

// stamp writes down when a value is sent.
func stamp(value []byte, at time.Time) { binary.BigEndian.PutUint64(value, uint64(at.UnixNano())) }

// sent is when a value was.
func sent(value []byte) time.Time {
	if len(value) < headBytes {
		return time.Time{}
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(value)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(value []byte) uint32 { return crc32.Checksum(value, castagnoli) }

// LeastValue is the size of the smallest value.
const LeastValue = headBytes

// Values returns a function that makes the next value of an object, as the load does. It belongs to one goroutine at a time.
func Values(random bool) func(number, size int) []byte { return newMaterial(random).object }
