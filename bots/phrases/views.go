package phrases

// views are the words about tools' views, in simplified and in traditional Chinese.
var views = map[Key][2]string{
	"Larger":  {"放大", "放大"},
	"Smaller": {"缩小", "縮小"},
	"The view of {tool} did not start. This is the plain result:": {"{tool} 的视图没有启动。这是原始结果：", "{tool} 的檢視沒有啟動。這是原始結果："},
	"The view of {tool} is closed.":                               {"{tool} 的视图已关闭。", "{tool} 的檢視已關閉。"},
	"The view of {tool} was stopped: it sent too much.":           {"{tool} 的视图已停止：它发送得太多。", "{tool} 的檢視已停止：它傳送得太多。"},
	"shown by {server}":                                           {"由 {server} 显示", "由 {server} 顯示"},
	"{tool}, shown by {server}":                                   {"{tool}，由 {server} 显示", "{tool}，由 {server} 顯示"},
	"too many views are being opened; try again in a minute":      {"正在打开的视图过多；请一分钟后再试", "正在開啟的檢視過多；請一分鐘後再試"},
}
