// Package raising decides, on the leader, when the active feature level rises: at once, after all members have run builds that
// know the next level for a time, or only on an operator's word (level.Policy).
//
// A Raiser proposes commands and waits for none. The state machine keeps policy and time (level.Rise), so that another leader
// goes on where the last one was. Time is that of the leader's own monotonic clock: no member's wall clock can end a soak. It
// counts only while the leader looks, and while every member is there and finds nothing wrong (Paused). A change of leaders
// loses at most what was not noted yet.
//
// The main type is Raiser. The simulator runs it as members do.
//
// Invariants:
//  1. A Raiser never proposes to raise the level before all members have published that they know it and the policy allows it;
//     the state machine checks both again.
//  2. No time counts twice, and none in which the leader did not look.
//  3. No time counts once a member has found something for longer than a verdict lasts, but for what lies between two looks
//     (MostBetween).
//
// A Raiser is for one goroutine.
package raising
