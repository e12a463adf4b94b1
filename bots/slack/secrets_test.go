package slack
