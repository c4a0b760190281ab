// SPDX-License-Identifier: Apache-2.0

// A broker that speaks Kafka's protocol and keeps messages in memory: franz-go's kfake, which its authors test their client
// with. It is not Apache Kafka: no disk, one broker, no replicas.
// usage: broker TOPIC MAX_MESSAGE_BYTES; prints its address, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, os.Args[1]),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": os.Args[2]}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
	cluster.Close()
}
