#!/bin/sh
# Write the plan of a day, today by default, to FOLDER/DAY.json: nightly-plan.sh STUDY FOLDER [DAY].
# MULTIPLAY_URL is the address of the service, MULTIPLAY_KEY an API key with the right play.
# The key of the request is the day: a repetition writes the same plan, and asks for none.
set -eu
study=$1 folder=$2 day=${3:-$(date +%F)}
part=$(mktemp "$folder/.plan-XXXXXX")
trap 'rm -f "$part"' EXIT
printf 'Authorization: Bearer %s\n' "$MULTIPLAY_KEY" | # not an argument, which all users can read
	curl --silent --show-error --fail-with-body --output "$part" \
		--retry 6 --retry-all-errors --retry-max-time 600 --max-time 60 \
		--header @- --header 'Content-Type: application/json' \
		--header "Idempotency-Key: nightly-plan-$day" \
		--data "{\"key\": \"$day\"}" "$MULTIPLAY_URL/v1/studies/$study/ask"
mv "$part" "$folder/$day.json"
