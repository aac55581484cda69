package top

import "time"

// Costs that are estimated, in the proportions of what BenchmarkRoad and BenchmarkCall show, rounded: what members do
// for a call is spread over goroutines that work for many, and no clock counts it apart. Only what a call reads from the store
// is measured. They are of one machine: shares of them mean more than their sum.
const (
	writeCost    = 40 * time.Microsecond // transport, log and state machine
	partCost     = 5 * time.Microsecond  // each comparison and each operation of a transaction
	readCost     = 20 * time.Microsecond // transport
	messageCost  = 5 * time.Microsecond  // to a watcher
	writtenBytes = 250                   // that take a microsecond: they are logged, sent to members and stored
	sentBytes    = 1000                  // likewise, to clients
)

// CostOfWrite is about how long processors work for a write with so many parts, and bytes of its request and of its answer.
func CostOfWrite(parts, received, sent int) time.Duration {
	return writeCost + time.Duration(parts)*partCost + micros(received, writtenBytes) + micros(sent, sentBytes)
}

// CostOfRead is the same of a read that took so long in the store.
func CostOfRead(took time.Duration, sent int) time.Duration {
	return readCost + max(0, took) + micros(sent, sentBytes)
}

// CostOfMessage is the same of a message to a watcher.
func CostOfMessage(sent int) time.Duration { return messageCost + micros(sent, sentBytes) }

func micros(bytes, each int) time.Duration {
	return time.Duration(bytes) * time.Microsecond / time.Duration(each)
}
