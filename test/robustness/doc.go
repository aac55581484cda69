// Package robustness breaks whole clusters of members as they ship, with real peer connections and the official client,
// over a file system in memory that forgets what was not synced. It has no code but tests:
//
//   - All members lose power at one moment, under load, again and again. Bytes that were written and not synced are lost,
//     kept, or kept in part, block by block. It differs from the simulator in that nothing but the disk is simulated, and from
//     killed processes in that those keep the page cache.
//   - One bit is flipped in a file of one member, at rest. It is noticed or healed, never served.
//   - One scenario for each row of the record that etcd's robustness tests keep of etcd's own defects.
//
// Longer runs:
//
//	go test ./test/robustness -run PowerLoss -losses 200 -timeout 0
//	go test ./test/robustness -run FlippedBits -flips 500 -timeout 0
package robustness
